// The token, asked for once and kept for this tab only.

import { byId, setText } from "./dom.js";

const PLACE = "streamlearn-token";
let held = read();
let asking = null;

function read() {
  try {
    return sessionStorage.getItem(PLACE);
  } catch {
    return null; // storage may be forbidden: then it is asked for again after a reload
  }
}

export const token = () => held;

export function forgetToken() {
  keep(null);
}

function keep(value) {
  held = value;
  try {
    if (value === null) sessionStorage.removeItem(PLACE);
    else sessionStorage.setItem(PLACE, value);
  } catch {
    // held in memory
  }
}

// However many requests need it, one question.
export function askForToken(wasWrong) {
  if (held !== null) return Promise.resolve();
  asking ??= new Promise((answered) => {
    const dialog = byId("token-dialog");
    const field = byId("token");
    setText(byId("token-why"), wasWrong ? "That token is not right. Try another one." : "It is kept until you close this tab.");
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      keep(field.value.trim());
      field.value = "";
      dialog.close();
      asking = null;
      answered();
    };
    dialog.oncancel = (event) => event.preventDefault(); // nothing can be shown without one
    if (!dialog.open) dialog.showModal();
    field.focus();
  });
  return asking;
}
