// What is remembered: how many of each class, and the wall.

import { byId, el, keyed, setAttribute, setText } from "./dom.js";
import { count, percent } from "./words.js";
import { startWall } from "./wall.js";

const EVERY = 5000; // at most so often is the wall looked at again

export function startBuffer(tried) {
  const wall = startWall(tried);
  const pick = byId("buffer-class");
  let visible = false;
  let looked = { at: -EVERY, examples: -1 };

  const choose = (label) => {
    if (pick.value !== label) pick.value = label;
    for (const bar of byId("class-bars").children) setAttribute(bar, "aria-pressed", bar.dataset.label === label);
    wall.choose(label).catch(() => {});
  };
  pick.addEventListener("change", () => choose(pick.value));
  new IntersectionObserver(([entry]) => (visible = entry.isIntersecting)).observe(byId("buffer"));

  function show({ status, groups, unreachable }) {
    const { capacity, examples, by_class: byClass } = status.buffer;
    const labels = [...groups.ofClass.keys()].filter((label) => byClass[label]);
    setText(
      byId("buffer-note"),
      examples
        ? `${count(examples)} of ${count(capacity)} places hold an example; they are replayed so that old classes stay known.`
        : "Nothing is remembered yet.",
    );
    const most = Math.max(1, ...Object.values(byClass));
    byId("class-bars").classList.toggle("many", labels.length > 40);
    keyed(byId("class-bars"), labels, (label) => label, bar, (node, label) => {
      setAttribute(node, "class", `class-bar ${groups.ofClass.get(label).class}`);
      const [name, track, value] = node.children;
      setText(name, label);
      track.firstChild.style.width = `${(byClass[label] / most) * 100}%`;
      setText(value, count(byClass[label]));
      setAttribute(node, "title", `${label}: ${count(byClass[label])} examples, ${percent(byClass[label] / examples)} of the buffer`);
    });
    keyed(pick, ["", ...labels], (label) => label, (label) => el("option", { value: label, text: label || "all" }), () => {});
    wall.learns(status.inputs);
    const due = performance.now() - looked.at > EVERY && looked.examples !== status.examples_seen;
    if (status.learner !== "up" || unreachable) looked.examples = -1; // look again when it is back
    else if (visible && due && status.inputs) {
      looked = { at: performance.now(), examples: status.examples_seen };
      wall.load().catch(() => (looked.examples = -1));
    }
  }

  function bar(label) {
    return el(
      "button",
      { type: "button", "data-label": label, "aria-pressed": "false", onclick: () => choose(pick.value === label ? "" : label) },
      el("span", { class: "class-name" }),
      el("span", { class: "track" }, el("i")),
      el("span", { class: "value" }),
    );
  }
  return { show };
}
