// Server-sent events, read by hand: EventSource cannot send the token. Comes back by itself, from the last event seen.

import { ask } from "./api.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 8000;

export function follow(told) {
  let last = "0"; // from the start: what happened before the page was opened, too
  let wait = FIRST_WAIT;
  let leaving = null;

  async function read() {
    leaving = new AbortController();
    const answer = await ask(`/v1/events?after=${last}`, { signal: leaving.signal });
    wait = FIRST_WAIT;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      const events = blocks.map(parse).filter((event) => event !== null);
      if (events.length) {
        last = events.at(-1).id;
        told(events);
      }
    }
  }

  async function run() {
    for (;;) {
      if (document.hidden) await visible();
      try {
        await read();
      } catch (error) {
        if (error.code === "no-learner") return; // a server that follows snapshots has none to tell
        wait = Math.min(2 * wait, LONGEST_WAIT);
      }
      await new Promise((go) => setTimeout(go, wait));
    }
  }

  document.addEventListener("visibilitychange", () => document.hidden && leaving?.abort());
  run();
}

function visible() {
  return new Promise((go) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      go();
    };
    document.addEventListener("visibilitychange", look);
  });
}

function parse(block) {
  const fields = {};
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
  }
  if (!fields.data) return null; // a comment that keeps the connection open
  return { id: fields.id, kind: fields.event, data: JSON.parse(fields.data) };
}
