// A feature vector as a small line: not to be read, but to be recognised.

import { svg } from "./dom.js";
import { linear } from "./scales.js";

const MOST = 128; // points; longer vectors are thinned

export function sparkline(numbers, width = 96, height = 40) {
  const step = Math.max(1, numbers.length / MOST);
  const shown = Array.from({ length: Math.min(numbers.length, MOST) }, (_, k) => numbers[Math.floor(k * step)]);
  const x = linear(0, Math.max(1, shown.length - 1), 3, width - 3);
  const y = linear(Math.min(...shown), Math.max(...shown), height - 4, 4);
  const d = `M${shown.map((value, k) => `${x(k).toFixed(1)} ${y(value).toFixed(1)}`).join("L")}`;
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "sparkline", "aria-hidden": "true" }, svg("path", { d }));
}
