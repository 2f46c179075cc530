// A line chart over the examples learned, as SVG: sharp at any size, coloured by the style sheet in both themes, and a
// thousandth of the size of a chart library.

import { el, svg } from "./dom.js";
import { hover } from "./chart_hover.js";
import { linear, merged, ticks } from "./scales.js";
import { brief } from "./words.js";

const LEFT = 44;
const RIGHT = 12;
const BOTTOM = 24;
const MARK_LANE = 20; // above the plot, where new classes and refits are marked

// options: label (for screen readers), format (of a value), percent (fixed from 0 to 1), marks, unit
export function lineChart(place, options) {
  const drawing = svg("svg", { role: "img", tabindex: "0", class: "plot" });
  const empty = el("p", { class: "empty", text: options.empty ?? "Nothing to show yet." });
  place.append(drawing, empty);
  let data = { x: [], series: [], marks: [] };
  const state = { highlighted: null };

  function draw() {
    const { clientWidth: width, clientHeight: height } = place;
    const points = data.series.some((one) => one.values.some((value) => value !== null));
    empty.hidden = points;
    drawing.classList.toggle("is-empty", !points);
    if (!width) return;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const top = options.marks ? MARK_LANE + 6 : 8;
    const [low, high] = options.percent ? [0, 1] : range(data.series);
    const first = data.x[0] ?? 0;
    const last = Math.max(data.x.at(-1) ?? 1, first + 1);
    const x = linear(first, last, LEFT, width - RIGHT);
    const y = linear(low, high, height - BOTTOM, top);
    drawing.replaceChildren(
      ...grid(x, y, [first, last], [low, high], { width, height, top }, options),
      ...(options.marks && points ? marks(data.marks, x, { height }) : []),
      ...data.series.map((one) => line(one, data.x, x, y, state.highlighted)),
    );
    drawing.setAttribute("aria-label", described(options, data));
    pointer.reset({ data, x, y, top, bottom: height - BOTTOM });
  }

  const pointer = hover(drawing, options);
  new ResizeObserver(draw).observe(place);
  return {
    update(fresh) {
      data = fresh;
      draw();
    },
    highlight(name) {
      state.highlighted = name;
      for (const path of drawing.querySelectorAll(".series")) fade(path, path.dataset.name, name);
    },
  };
}

function fade(path, name, highlighted) {
  path.classList.toggle("faded", highlighted !== null && name !== highlighted);
}

function range(series) {
  let high = 0;
  for (const one of series) for (const value of one.values) if (value !== null && value > high) high = value;
  if (!high) return [0, 1];
  const step = ticks(0, high, 4);
  return [0, Math.max(high * 1.04, step.at(-1))];
}

function grid(x, y, [first, last], [low, high], { width, height, top }, options) {
  const parts = [];
  for (const value of ticks(low, high, Math.max(2, Math.round((height - top - BOTTOM) / 45)))) {
    const at = y(value);
    parts.push(
      svg("line", { x1: LEFT, x2: width - RIGHT, y1: at, y2: at, class: value === low ? "axis" : "gridline" }),
      svg("text", { x: LEFT - 8, y: at + 4, class: "tick end", text: options.format(value) }),
    );
  }
  for (const value of ticks(first, last, Math.max(3, Math.floor(width / 110)))) {
    if (value !== Math.round(value)) continue;
    const at = x(value);
    const anchor = at > width - RIGHT - 20 ? "end" : at < LEFT + 20 ? "start" : "middle";
    parts.push(svg("text", { x: at, y: height - 6, class: "tick", "text-anchor": anchor, text: brief(value) }));
  }
  return parts;
}

function line(one, xs, x, y, highlighted) {
  const path = svg("path", {
    d: pathOf(one.values, xs, x, y),
    class: `series ${one.class}${one.values.filter((value) => value !== null).length === 1 ? " alone" : ""}`,
    "data-name": one.name,
  });
  fade(path, one.name, highlighted);
  return path;
}

// Over points that are not known the line goes straight on; one that stands alone becomes a dot.
function pathOf(values, xs, x, y) {
  const known = [];
  values.forEach((value, place) => value !== null && known.push(`${x(xs[place]).toFixed(1)} ${y(value).toFixed(1)}`));
  if (known.length === 1) return `M${known[0]}h0.01`;
  return known.length ? `M${known.join("L")}` : "";
}

function marks(all, x, { height }) {
  const parts = [];
  const refits = all.filter((mark) => mark.kind === "bias-refit");
  const classes = all.filter((mark) => mark.kind === "new-class");
  for (const { at, members } of merged(classes, (mark) => x(mark.examples), 7)) {
    parts.push(svg("line", { x1: at, x2: at, y1: MARK_LANE, y2: height - BOTTOM, class: "mark-line" }));
    parts.push(svg("path", { d: `M${at - 4.5} ${MARK_LANE - 8}h9l-4.5 8z`, class: `mark-new ${members[0].class ?? ""}` }));
  }
  for (const { at } of merged(refits, (mark) => x(mark.examples), 7)) {
    parts.push(svg("path", { d: `M${at} 0l3.5 4-3.5 4-3.5-4z`, class: "mark-refit" }));
  }
  return parts;
}

function described(options, data) {
  const now = data.series
    .map((one) => [one.label ?? one.name, one.values.findLast((value) => value !== null)])
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name} ${options.format(value)}`);
  return `${options.label}. ${now.length ? `Now: ${now.join(", ")}.` : "Nothing yet."} Arrow keys move through time.`;
}
