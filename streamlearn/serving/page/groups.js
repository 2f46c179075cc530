// One row for each class group: how well it is known, what was lost of its best, and whether it gets its share of answers.

import { byId, el, keyed, setAttribute, setText } from "./dom.js";
import { colourOf, ofRow, sum } from "./group_view.js";
import { tipFor } from "./tip.js";
import { count, listed, percent, points } from "./words.js";

export const best = (group) => group.accuracy.eval ?? group.accuracy.prequential;

export function startGroups(highlight) {
  const body = byId("group-rows");
  const all = byId("groups-all");
  let everything = false;
  let known = null;
  all.addEventListener("click", () => {
    everything = !everything;
    show(known);
  });

  function make(row) {
    const cell = (className) => el("td", { class: className });
    const node = el(
      "tr",
      {},
      el("th", { scope: "row" }, el("span", { class: `swatch ${row.class}` }), el("span", { class: "group-name" }, el("b"), el("small"))),
      el("td", { class: "known" }, el("span", { class: "bar" }, el("i"), el("u")), el("span", { class: "value" })),
      cell("number lost"),
      el("td", { class: "share" }, el("span", { class: "bars" }, el("i", { class: "is" }), el("i", { class: "should" })), el("span", { class: "value" })),
    );
    node.addEventListener("pointerenter", () => highlight(row.name));
    node.addEventListener("pointerleave", () => highlight(null));
    tipFor(node.querySelector("th"), () => [el("strong", { text: node.dataset.label }), el("div", { text: node.dataset.classes })]);
    return node;
  }

  function update(node, row) {
    const held = known.groups.all.some((group) => group.accuracy.eval !== null);
    const [name, knows, lost, share] = node.children;
    node.dataset.label = row.label;
    node.dataset.classes = listed(row.classes, 40);
    setAttribute(name.firstChild, "class", `swatch ${row.class}`);
    setText(name.querySelector("b"), row.label);
    setText(name.querySelector("small"), listed(row.classes, 4));
    const now = ofRow(row, best);
    const gone = ofRow(row, (group) => group.forgetting);
    setAttribute(node, "class", row.class);
    knows.querySelector("i").style.width = `${(now ?? 0) * 100}%`;
    const peak = knows.querySelector("u"); // where it was at its best
    peak.hidden = !gone || gone < 0.005;
    peak.style.left = `${Math.min(1, (now ?? 0) + (gone ?? 0)) * 100}%`;
    const guessed = held && row.members.every((group) => group.accuracy.eval === null);
    setText(knows.lastChild, `${percent(now)}${guessed ? " on the stream" : ""}`);
    setText(lost, gone === null ? "–" : gone < 0.005 ? "0" : `−${points(gone)}`);
    lost.classList.toggle("bad", gone >= 0.1);
    share.querySelector(".is").style.width = `${(row.share?.is ?? 0) * 100}%`;
    share.querySelector(".should").style.width = `${(row.share?.should ?? 0) * 100}%`;
    setText(share.lastChild, row.share ? `${points(row.share.is)} / ${points(row.share.should)} %` : "–");
  }

  function show(fresh) {
    known = fresh;
    const { groups, shares } = known;
    const merged = groups.all.length - groups.rows.length + 1;
    all.hidden = groups.rows.length === groups.all.length;
    setText(all, everything ? "newest ten only" : `all ${groups.all.length}`);
    const rows = everything && !all.hidden ? split(groups, merged) : groups.rows;
    for (const row of rows) row.share = shares?.of(row);
    setText(byId("groups-note"), shares ? `Answers to ${answersTo(shares)}.` : "A group is what arrived together.");
    keyed(body, rows, (row) => row.name, make, update);
  }
  return { show };
}

// All by themselves; those that share a colour with none keep the grey of the older ones.
function split(groups, merged) {
  return groups.all.map((group, place) => ({
    name: group.name,
    label: group.name,
    classes: group.classes,
    class: place < merged ? "g-older" : colourOf(place),
    members: [group],
  }));
}

// Which part of the answers named each group, and which part of the truth was of it.
export function sharesOf(confusion) {
  if (!confusion?.answers) return null;
  const named = new Map();
  const truth = new Map();
  const add = (map, label, n) => map.set(label, (map.get(label) ?? 0) + n);
  for (const [true_, answer, n] of confusion.counts) {
    add(truth, confusion.labels[true_], n);
    if (answer !== null) add(named, confusion.labels[answer], n);
  }
  const part = (map, row) => sum(row.classes.map((label) => map.get(label))) / confusion.answers;
  return { answers: confusion.answers, source: confusion.source, of: (row) => ({ is: part(named, row), should: part(truth, row) }) };
}

// What the answers are to that are compared: the newest round of held-out records, or the stream's newest examples.
export const answersTo = ({ answers, source }) =>
  source === "eval" ? `the last ${count(answers)} held-out records` : `the last ${count(answers)} examples, given before they were learned`;

// In words, for whoever reads only the top of the page.
export function biasWords(groups, shares) {
  if (!shares || groups.all.length < 2) return "";
  const asked = groups.rows.findLast((row) => shares.of(row).should > 0);
  if (!asked) return "";
  const { is, should } = shares.of(asked);
  const more = is - should;
  const fair = Math.abs(more) < 0.25 * should + 0.005;
  const verdict = fair ? "as it should be" : more > 0 ? "too many: it leans to the newest" : "too few";
  const who = asked === groups.rows.at(-1) ? "The newest group" : `${asked.label}, the newest that was asked for,`;
  return `${who} gets ${percent(is)} of the answers, ${percent(should)} are right for it: ${verdict}.`;
}
