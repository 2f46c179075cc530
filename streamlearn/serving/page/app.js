// The live page: asks the daemon what it is doing, and hands what it said to the parts that show it.

import { startAccuracy } from "./accuracy.js";
import { Unreachable, askJson } from "./api.js";
import { startBuffer } from "./buffer.js";
import { startConfusion } from "./confusion.js";
import { byId, setText } from "./dom.js";
import { follow } from "./event_stream.js";
import { groupView } from "./group_view.js";
import { sharesOf, startGroups } from "./groups.js";
import { startHappenings } from "./happenings.js";
import { showHealth, showKnowledge } from "./health.js";
import { startLearning } from "./learning.js";
import { poll } from "./polling.js";
import { startRecords } from "./records.js";
import { startTrying } from "./try_it.js";
import { clock } from "./words.js";

const STATUS_EVERY = 1000;
const HISTORY_EVERY = 5000;
const RATE_OVER = 6; // seconds

// What is known of the daemon: status, history and confusion as it tells them, and what follows from them.
const known = { status: null, history: null, confusion: null, groups: groupView(null), shares: null, rate: null, unreachable: false, seenAt: null };

const trying = startTrying();
const accuracy = startAccuracy();
const parts = [startGroups(accuracy.highlight), accuracy, trying, startBuffer(trying.tryExample), startConfusion(), startLearning()];
const records = startRecords();
const happenings = startHappenings();

function show() {
  showHealth(known);
  document.body.classList.toggle("stale", known.unreachable);
  if (known.status === null) return;
  document.body.classList.toggle("following", known.status.learner === "elsewhere");
  showKnowledge(known);
  records.show(known);
  for (const part of parts) part.show(known);
  setText(byId("as-of"), `As of ${clock(known.seenAt)}.`);
}

const counts = []; // [seconds, examples learned], the newest last

function measureRate(status) {
  const now = performance.now() / 1000;
  const restarted = counts.length && status.examples_seen < counts.at(-1)[1];
  if (restarted || status.learner !== "up") counts.length = 0;
  counts.push([now, status.examples_seen]);
  while (counts.length > 2 && now - counts[0][0] > RATE_OVER) counts.shift();
  const [then, before] = counts[0];
  return now > then ? (status.examples_seen - before) / (now - then) : null;
}

let listening = false;

// Not before the first status: a server that follows snapshots has no events, and one question for the token is enough.
function listen() {
  if (listening) return;
  listening = true;
  follow((events) => {
    records.told(events);
    happenings.told(events);
  });
}

async function lookAtStatus() {
  const status = await askJson("/v1/status");
  const back = known.unreachable || (known.status?.learner !== "up" && status.learner === "up");
  Object.assign(known, { status, groups: groupView(status), rate: measureRate(status), unreachable: false, seenAt: Date.now() / 1000 });
  show();
  if (status.learner !== "elsewhere") listen();
  if (back) lookAtHistoryNow();
}

let toldAt = null; // examples learned when the history was last asked for

async function lookAtHistory() {
  const { status } = known;
  if (status === null || status.learner !== "up") return;
  const fresh = `${status.examples_seen} ${status.records_consumed} ${status.bias.version}`;
  if (fresh === toldAt) return;
  const [history, confusion] = await Promise.all([askJson("/v1/history"), askJson("/v1/confusion")]);
  toldAt = fresh;
  Object.assign(known, { history, confusion, shares: sharesOf(confusion) });
  show();
}

poll(STATUS_EVERY, lookAtStatus, (error) => {
  if (error instanceof Unreachable || error.status >= 500) known.unreachable = true;
  counts.length = 0;
  show();
});
const lookAtHistoryNow = poll(HISTORY_EVERY, lookAtHistory);
