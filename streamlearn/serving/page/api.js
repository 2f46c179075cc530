// Asking the daemon. With the token, if it wants one; what goes wrong becomes an Error with words for a reader.

import { askForToken, forgetToken, token } from "./token.js";

export class Unreachable extends Error {}

export class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

// Seconds the daemon's clock is ahead of the browser's: ages must be right on a phone whose clock is not.
let ahead = 0;
export const daemonNow = () => Date.now() / 1000 + ahead;

const LONGEST_WAIT = 8000;

export async function ask(path, options = {}) {
  for (;;) {
    const used = token();
    const headers = { ...options.headers, ...(used ? { Authorization: `Bearer ${used}` } : {}) };
    let answer;
    try {
      const signal = options.signal ?? AbortSignal.timeout(LONGEST_WAIT);
      answer = await fetch(path, { cache: "no-store", ...options, headers, signal });
    } catch (error) {
      throw new Unreachable(String(error));
    }
    if (answer.status === 401) {
      if (used === token()) forgetToken(); // unless somebody has given a new one meanwhile
      await askForToken(used !== null);
      continue;
    }
    const date = Date.parse(answer.headers.get("date"));
    if (date) ahead = Math.abs(date - Date.now()) < 2000 ? 0 : (date - Date.now()) / 1000;
    if (!answer.ok) throw await refusal(answer);
    return answer;
  }
}

async function refusal(answer) {
  try {
    const { code, message } = (await answer.json()).error;
    return new Refused(answer.status, code, message);
  } catch {
    return new Refused(answer.status, "unknown", `the daemon answered with ${answer.status}`);
  }
}

export async function askJson(path, options) {
  const answer = await ask(path, options);
  try {
    return await answer.json();
  } catch (error) {
    throw new Unreachable(String(error)); // cut off in the middle
  }
}
