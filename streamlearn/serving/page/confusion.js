// Which classes are taken for which, of the recent answers. Of many classes, the matrix is of their groups.

import { byId, el, keyed, setText, svg } from "./dom.js";
import { answersTo } from "./groups.js";
import { hideTip, showTip } from "./tip.js";
import { count, percent, shortened } from "./words.js";

const MOST_CLASSES = 40;
const MOST_LISTED = 5;
const LABELS = 92; // pixels on the left
const SMALLEST_LABELLED = 11; // pixels of a cell that still has room for a name

export function startConfusion() {
  const place = byId("matrix");
  const drawing = svg("svg", { role: "img", "aria-label": "Confusion matrix: the list below names what is mixed up most" });
  place.append(drawing);
  let drawn = null;

  new ResizeObserver(() => drawn && draw(drawing, place.clientWidth, drawn)).observe(place);
  return {
    show({ confusion: told, groups }) {
      if (!told) return;
      // Answers given before any class was known name none.
      const confusion = { ...told, counts: told.counts.filter(([, named]) => named !== null) };
      const many = confusion.labels.length > MOST_CLASSES;
      drawn = many ? byGroup(confusion, groups) : byClass(confusion, groups);
      setText(byId("confusion-note"), note(confusion, many));
      draw(drawing, place.clientWidth, drawn);
      const mixed = mostMixedUp(confusion);
      keyed(byId("mixed-up"), mixed, ({ pair }) => pair, () => el("li"), (node, one) => {
        setText(node, `${one.truth} taken for ${one.named}: ${percent(one.share)} (${count(one.n)} of ${count(one.of)})`);
      });
    },
  };
}

function note(confusion, many) {
  if (!confusion.counts.length) return "No answers to compare yet.";
  const what = many ? `; ${confusion.labels.length} classes are too many to show, so their groups are` : "";
  return `Answers to ${answersTo(confusion)}. A row is a class, across is what it was taken for${what}.`;
}

const byClass = ({ labels, counts }, groups) => ({
  names: labels,
  classes: labels.map((label) => groups.ofClass.get(label)?.class ?? ""),
  counts,
});

function byGroup({ labels, counts }, groups) {
  const rowOf = labels.map((label) => groups.rows.indexOf(groups.ofClass.get(label)));
  const sums = new Map();
  for (const [truth, named, n] of counts) {
    const key = `${rowOf[truth]},${rowOf[named]}`;
    if (!key.includes("-1")) sums.set(key, (sums.get(key) ?? 0) + n);
  }
  return {
    names: groups.rows.map((row) => row.label),
    classes: groups.rows.map((row) => row.class),
    counts: [...sums].map(([key, n]) => [...key.split(",").map(Number), n]),
  };
}

function mostMixedUp({ labels, counts }) {
  const of = totals(counts, labels.length);
  return counts
    .filter(([truth, named, n]) => truth !== named && n > 1)
    .map(([truth, named, n]) => ({ truth: labels[truth], named: labels[named], n, of: of[truth], share: n / of[truth], pair: `${truth},${named}` }))
    .sort((a, b) => b.n - a.n || b.share - a.share)
    .slice(0, MOST_LISTED);
}

function totals(counts, size) {
  const of = Array(size).fill(0);
  for (const [truth, , n] of counts) of[truth] += n;
  return of;
}

function draw(drawing, width, { names, classes, counts }) {
  const size = names.length;
  if (!size || !width) return drawing.replaceChildren();
  const most = Math.min(width - LABELS, size * 44, 520);
  const cell = Math.max(3, Math.floor(most / size));
  const labelled = cell >= SMALLEST_LABELLED;
  const left = labelled ? LABELS : 8;
  const side = cell * size;
  const font = Math.min(12, Math.max(9, cell - 3));
  const bottom = labelled ? 84 : 8;
  drawing.setAttribute("width", left + side + 40);
  drawing.setAttribute("height", side + bottom);
  const of = totals(counts, size);
  const parts = [svg("rect", { x: left, y: 0, width: side, height: side, class: "matrix-ground" })];
  for (const [truth, named, n] of counts) {
    const share = n / of[truth];
    const box = svg("rect", { x: left + named * cell, y: truth * cell, width: cell - 1, height: cell - 1, class: truth === named ? "hit" : "miss" });
    box.style.fillOpacity = 0.08 + 0.92 * Math.sqrt(share);
    parts.push(box);
    if (cell >= 30 && share >= 0.005) {
      parts.push(svg("text", { x: left + (named + 0.5) * cell, y: (truth + 0.5) * cell + 4, class: share > 0.3 ? "cell strong" : "cell", text: Math.round(share * 100) }));
    }
  }
  if (labelled) parts.push(...labels(names, classes, { left, cell, side, font }));
  drawing.replaceChildren(...parts);
  drawing.onpointermove = (event) => tell(event, drawing, { left, cell, names, counts, of });
  drawing.onpointerleave = hideTip;
}

function labels(names, classes, { left, cell, side, font }) {
  return names.flatMap((name, k) => {
    const middle = (k + 0.5) * cell;
    const text = shortened(name, 13);
    const across = svg("text", { x: left - 12, y: middle + font / 3, class: "name end", text });
    const slope = cell < 26 ? 62 : 40; // steeper where the next one is near
    const down = svg("text", { x: 0, y: 0, class: "name", text, transform: `translate(${left + middle - 3} ${side + 14}) rotate(${slope})` });
    for (const label of [across, down]) label.style.fontSize = `${font}px`;
    return [
      across,
      down,
      svg("rect", { x: left - 7, y: k * cell, width: 4, height: cell - 1, class: `group-edge ${classes[k]}` }),
      svg("rect", { x: left + k * cell, y: side + 3, width: cell - 1, height: 4, class: `group-edge ${classes[k]}` }),
    ];
  });
}

function tell(event, drawing, { left, cell, names, counts, of }) {
  const box = drawing.getBoundingClientRect();
  const named = Math.floor((event.clientX - box.left - left) / cell);
  const truth = Math.floor((event.clientY - box.top) / cell);
  if (named < 0 || named >= names.length || truth < 0 || truth >= names.length) return hideTip();
  const n = counts.find(([a, b]) => a === truth && b === named)?.[2] ?? 0;
  const what = truth === named ? "named right" : `taken for ${names[named]}`;
  return showTip(
    [el("strong", { text: names[truth] }), el("div", { text: `${what}: ${percent(of[truth] ? n / of[truth] : 0)}` }), el("div", { class: "muted", text: `${count(n)} of ${count(of[truth])} answers` })],
    event.clientX,
    event.clientY,
  );
}
