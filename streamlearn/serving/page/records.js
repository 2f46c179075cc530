// Records that were refused, and the last checkpoint.

import { daemonNow } from "./api.js";
import { byId, el, facts, keyed, setText } from "./dom.js";
import { bytes, clock, count, duration, percent, plural, significant } from "./words.js";

const MOST_LETTERS = 50;

export function startRecords() {
  const letters = [];
  return {
    told(events) {
      for (const event of events) if (event.kind === "dead-letter") letters.unshift(event);
      letters.length = Math.min(letters.length, MOST_LETTERS);
      keyed(byId("refused-recent"), letters, (letter) => letter.id, letter, () => {});
    },
    show({ status }) {
      const refused = status.records_rejected;
      const share = refused / Math.max(1, status.records_consumed ?? 0);
      setText(
        byId("refused-note"),
        refused
          ? `${plural(refused, "record")} became dead letters, ${share < 0.005 ? "less than 1 %" : percent(share)} of all. “streamlearn dead-letters list” shows them whole.`
          : "None: every record could be used.",
      );
      const reasons = Object.entries(status.rejected ?? {}).sort((a, b) => b[1] - a[1]);
      keyed(byId("refused-reasons"), reasons, ([reason]) => reason, reasonBar, (node, [, n]) => {
        node.querySelector("i").style.width = `${(n / reasons[0][1]) * 100}%`;
        setText(node.lastChild, count(n));
      });
      showCheckpoint(status.checkpoint, status.examples_seen);
    },
  };
}

function letter({ data }) {
  return el(
    "li",
    {},
    el("b", { text: data.reason }),
    el("span", { class: "muted", text: ` ${clock(data.at)}, offset ${count(data.offset)}${data.partition ? ` of partition ${data.partition}` : ""}` }),
    el("span", { class: "message", text: data.message }),
  );
}

const reasonBar = ([reason]) =>
  el(
    "li",
    { class: "class-bar" },
    el("span", { class: "class-name", text: reason }),
    el("span", { class: "track" }, el("i")),
    el("span", { class: "value" }),
  );

function showCheckpoint(last, examples) {
  setText(byId("saved-note"), last ? "What a restart would go on from; nothing on the stream is lost either way." : "None yet.");
  if (!last) return;
  facts(byId("saved-facts"), [
    ["saved", `${duration(daemonNow() - last.at)} ago`, new Date(last.at * 1000).toLocaleString()],
    ["number", count(last.id)],
    ["holds", plural(last.examples_seen, "example")],
    ["since then", plural(Math.max(0, examples - last.examples_seen), "example")],
    ["written", last.bytes_written === undefined ? null : bytes(last.bytes_written)],
    ["whole size", bytes(last.bytes_total)],
    ["took", last.seconds === undefined ? null : `${significant(last.seconds, 2)} s`],
  ]);
}
