// Accuracy of each class group over time, on held-out records or on the stream before each example is learned.

import { lineChart } from "./chart.js";
import { byId, setAttribute, setText } from "./dom.js";
import { historyOf } from "./group_view.js";
import { percent } from "./words.js";

const NOTES = {
  eval: "Answers to held-out records (split = eval), which are never learned from.",
  prequential: "Answers to each example just before it is learned. Old groups only move when they come again.",
};

export function startAccuracy() {
  const chart = lineChart(byId("accuracy-chart"), {
    label: "Accuracy of each class group over the examples learned",
    format: percent,
    percent: true,
    marks: true,
    empty: "The first answers appear here.",
  });
  let source = "eval";
  let chosen = false; // by the reader
  let known = null;

  function choose(wanted) {
    source = wanted;
    if (known) show(known);
  }
  for (const one of ["eval", "prequential"]) {
    byId(`on-${one}`).addEventListener("click", () => {
      chosen = true;
      choose(one);
    });
  }

  function show(fresh) {
    known = fresh;
    const { history, groups } = known;
    if (!history) return;
    const held = Object.values(history.groups).some((group) => group.eval?.some((value) => value !== null));
    if (!chosen) source = held ? "eval" : "prequential";
    for (const one of ["eval", "prequential"]) setAttribute(byId(`on-${one}`), "aria-pressed", one === source);
    setText(byId("accuracy-note"), source === "eval" && !held ? "No held-out records yet. Send some with split = eval." : NOTES[source]);
    chart.update({
      x: history.examples,
      series: groups.rows.map((row) => ({
        name: row.name,
        label: row.label,
        class: row.class,
        values: historyOf(row, history, source),
      })),
      marks: history.marks.map((mark) => ({ ...mark, class: (groups.of.get(mark.group) ?? groups.ofClass.get(mark.labels?.[0]))?.class })),
    });
  }
  return { show, highlight: chart.highlight };
}
