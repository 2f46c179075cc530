// What happens, as it happens.

import { byId, el, keyed, setText } from "./dom.js";
import { clock, count, percent, plural, significant } from "./words.js";

const KEPT = 200;
const ROUTINE = new Set(["snapshot", "accuracy", "checkpoint"]);

const WORDS = {
  "new-class": (data) => `New class ${data.label}, ${plural(data.classes, "class", "classes")} now`,
  "bias-refit": (data) => `Bias refitted for ${data.group ?? "all groups"} (${data.cause}), α ${significant(data.alpha)}`,
  "dead-letter": (data) => `Refused a record at offset ${count(data.offset)}: ${data.reason}`,
  "step-discarded": (data) => `A step was undone: ${data.why}`,
  "end-of-group": (data) => `End of a group, after ${plural(data.examples, "example")}`,
  flush: (data) => `Flushed, after ${plural(data.examples, "example")}`,
  erased: (data) => `Forgot ${plural(data.examples, "example")} on request (${data.id ?? data.label})`,
  paused: () => "Learning was paused",
  resumed: () => "Learning was resumed",
  checkpoint: (data) => `Checkpoint ${count(data.id)} at ${plural(data.examples_seen, "example")}`,
  snapshot: (data) => `Model version ${count(data.version)} at ${plural(data.examples_seen, "example")}`,
  accuracy: (data) =>
    `Accuracy: ${Object.entries(data.groups).slice(-3).map(([name, by]) => `${name} ${percent(by.eval ?? by.prequential)}`).join(", ")}`,
};

export function startHappenings() {
  const routine = byId("events-routine");
  const all = [];
  routine.addEventListener("change", show);

  function show() {
    const shown = all.filter((event) => routine.checked || !ROUTINE.has(event.kind)).slice(0, KEPT);
    keyed(byId("event-list"), shown, (event) => event.id, make, () => {});
  }

  function make({ kind, data }) {
    const node = el("li", { class: `event ${kind}` }, el("time", { text: clock(data.at) }), el("span"));
    setText(node.lastChild, (WORDS[kind] ?? ((rest) => `${kind} ${JSON.stringify(rest)}`))(data));
    return node;
  }

  return {
    told(events) {
      for (const event of events) all.unshift(event);
      // The frequent ones must not push out the rare ones.
      for (const usual of [true, false]) {
        const kind = all.filter((event) => ROUTINE.has(event.kind) === usual);
        for (const event of kind.slice(KEPT)) all.splice(all.indexOf(event), 1);
      }
      show();
    },
  };
}
