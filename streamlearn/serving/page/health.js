// The three answers at the top: is it well, what does it know, what is it forgetting.

import { daemonNow } from "./api.js";
import { byId, facts, el, keyed, setText } from "./dom.js";
import { mean, ofRow } from "./group_view.js";
import { best, biasWords } from "./groups.js";
import { capital, clock, count, duration, listed, percent, plural, points } from "./words.js";

const PREDICTIONS_GO_ON = "Predictions are answered meanwhile, by the last model.";

// -> kind (the colour), word, why, what to do
export function verdict({ status, unreachable, seenAt, rate }) {
  if (unreachable) {
    const since = seenAt ? ` What you see is from ${clock(seenAt)}.` : "";
    return ["bad", "Cannot be reached", `No daemon answers at ${location.host}.${since}`, "Is it running? This page comes back by itself."];
  }
  if (!status) return ["calm", "Connecting", "Asking the daemon how it is.", ""];
  const reason = sentence(status.reason);
  switch (status.learner) {
    case "elsewhere":
      return ["calm", "Following", "This server answers from snapshots. The learner is elsewhere: its own page tells more.", ""];
    case "starting":
      return status.snapshot
        ? ["warn", "Learner away", reason, `Nothing to do: it comes back by itself. ${PREDICTIONS_GO_ON}`]
        : ["calm", "Starting", reason, ""];
    case "away":
      return ["warn", "Learner away", reason, `If this lasts, its log says why. ${PREDICTIONS_GO_ON}`];
    case "stopped":
      return ["bad", "Stopped", reason, `Mend the cause and start the daemon again: it goes on where it was. ${PREDICTIONS_GO_ON}`];
  }
  if (status.state === "paused") {
    return ["warn", "Paused", "Somebody paused learning.", `POST /v1/admin/resume, with the administrator's token, lets it go on. ${PREDICTIONS_GO_ON}`];
  }
  if (status.reason) {
    const disk = status.reason.startsWith("checkpoints");
    return ["warn", "Waiting", reason, disk ? "Make room on its disk: it goes on with the first save that succeeds." : "It tries again by itself. Is the stream's broker up?"];
  }
  if (!status.examples_seen && status.state === "idle") {
    return ["calm", "Waiting for a first example", "All is well, but nothing is on the stream yet.", "POST /v1/examples, or any producer, sends one."];
  }
  // Between two records of a slow stream it is idle for a moment; and words that change each second would be read aloud.
  if (status.state === "idle" && !rate) return ["good", "Idle", "All is well: everything on the stream is learned.", ""];
  const catchingUp = status.stream.lag > Math.max(100, 5 * (rate ?? 0));
  return ["good", "Learning", catchingUp ? "All is well: it is catching up with the stream." : "All is well: it keeps up with the stream.", ""];
}

const sentence = (text) => (text ? capital(text.trim()).replace(/[.]?$/, ".") : "");

export function showHealth(known) {
  const { status } = known;
  const [kind, word, why, todo] = verdict(known);
  document.documentElement.dataset.state = kind;
  document.title = `${word} – streamlearn`;
  setText(byId("state-word"), word);
  setText(byId("state-why"), why);
  setText(byId("state-do"), todo);
  if (!status) return;
  setText(byId("stream-url"), status.stream.url ?? "snapshots");
  const served = status.serving;
  const up = status.learner === "up" && !known.unreachable;
  facts(byId("facts"), [
    ["learned", plural(status.learner === "elsewhere" ? (served?.examples_seen ?? 0) : status.examples_seen, "example")],
    ["speed", up ? `${count(known.rate)} examples/s` : "–"],
    ["behind", status.stream.lag === null ? "–" : plural(status.stream.lag, "record")],
    ["up for", up && status.started_at ? duration(daemonNow() - status.started_at) : "–"],
    ["model", served ? `version ${count(served.version)}` : "none yet"],
    ["model age", served ? duration(daemonNow() - served.published_at) : "–"],
  ]);
}

export function showKnowledge({ status, groups, shares }) {
  const classes = status.classes.length;
  const held = status.groups.some((group) => group.accuracy.eval !== null);
  const accuracy = mean(status.groups.map((group) => (held ? group.accuracy.eval : group.accuracy.prequential)));
  setText(byId("knows-number"), classes ? percent(accuracy) : "Nothing yet");
  setText(
    byId("knows-why"),
    classes
      ? `of the answers are right, on average over the groups, ${held ? heldOut(status) : "just before each example is learned"}. ${plural(classes, "class", "classes")} in ${plural(groups.all.length, "group")} so far.`
      : "Its first class comes with its first example.",
  );
  keyed(
    byId("knows-bars"),
    groups.rows,
    (row) => row.name,
    () => el("span", {}, el("i")),
    (node, row) => {
      node.className = row.class;
      node.firstChild.style.height = `${(ofRow(row, best) ?? 0) * 100}%`;
    },
  );
  showForgetting(status, held, biasWords(groups, shares));
}

// Held-out records come now and then: what they say is of the model of that time.
function heldOut({ held_out_at: at, examples_seen: seen }) {
  return at === null || at === seen ? "on held-out examples" : `on held-out examples, last asked after ${plural(at, "example")}`;
}

function showForgetting(status, held, bias) {
  const measured = status.groups.filter((group) => group.forgetting !== null);
  const lost = mean(measured.map((group) => group.forgetting));
  const worst = measured.reduce((a, b) => (a && a.forgetting >= b.forgetting ? a : b), null);
  setText(byId("forgets-number"), lost === null ? "–" : lost < 0.005 ? "Nothing" : `${points(lost)} points`);
  setText(byId("forgets-why"), forgettingWords(status, held, lost, worst));
  setText(byId("bias-why"), bias);
}

function forgettingWords(status, held, lost, worst) {
  if (status.groups.length < 2) return "There is nothing to forget before a second group of classes arrives.";
  if (!held) return "Not measured: send held-out records of old classes (split = eval) to see it.";
  if (lost === null) return "It takes a second round of held-out records to tell.";
  if (worst.forgetting < 0.005) return "Every group is known as well as it ever was.";
  return `below each group's best, on average. Worst: ${worst.name} (${listed(worst.classes)}), ${points(worst.forgetting)} points.`;
}
