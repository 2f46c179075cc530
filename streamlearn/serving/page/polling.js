// Asking again and again: not while nobody looks, and more slowly while nothing answers.

import { Unreachable } from "./api.js";

const SLOWEST = 8000;

// `action` is called every `every` milliseconds after it has ended. A failure is told to `failed`.
export function poll(every, action, failed = () => {}) {
  let timer = null;
  let failures = 0;
  let running = false;

  async function run() {
    timer = null;
    if (document.hidden || running) return;
    running = true;
    let wait = every;
    try {
      await action();
      failures = 0;
    } catch (error) {
      if (!(error instanceof Unreachable) && error.status === undefined) console.error(error);
      failures += 1;
      wait = Math.min(every * 2 ** (failures - 1), Math.max(every, SLOWEST));
      failed(error, wait);
    }
    running = false;
    timer ??= setTimeout(run, wait);
  }

  function now() {
    clearTimeout(timer);
    timer = null;
    run();
  }

  document.addEventListener("visibilitychange", () => !document.hidden && now());
  now();
  return now;
}
