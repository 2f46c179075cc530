// Numbers to pixels, and where the ticks go.

export function linear(from, to, start, end) {
  const span = to - from || 1;
  const scale = (value) => start + ((value - from) / span) * (end - start);
  scale.back = (pixel) => from + ((pixel - start) / (end - start || 1)) * span;
  return scale;
}

// Round numbers, about `wanted` of them, that lie within.
export function ticks(from, to, wanted) {
  if (!(to > from)) return [from];
  const rough = (to - from) / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((size) => size >= rough * 0.7);
  const found = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + step * 1e-9; k++) found.push(+(k * step).toPrecision(12));
  return found;
}

// The place in an ascending list that is nearest to a value.
export function nearest(list, value) {
  let low = 0;
  let high = list.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (list[middle] < value) low = middle;
    else high = middle;
  }
  return Math.abs(list[low] - value) <= Math.abs(list[high] - value) ? low : high;
}

// Things along an axis that would lie on top of each other become one with several members.
export function merged(things, positionOf, distance) {
  const bunches = [];
  for (const thing of things) {
    const at = positionOf(thing);
    const last = bunches.at(-1);
    if (last && at - last.at < distance) last.members.push(thing);
    else bunches.push({ at, members: [thing] });
  }
  return bunches;
}
