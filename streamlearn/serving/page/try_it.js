// A picture (or numbers) of the reader's own, and what the model says to it.

import { askJson } from "./api.js";
import { byId, el, setText } from "./dom.js";
import { fitted, inWords, isPicture, paint } from "./inputs.js";
import { capital, count, percent } from "./words.js";

const SCORES = 5;

export function startTrying() {
  const answer = byId("try-answer");
  const drop = byId("drop");
  let inputs = null;
  let colours = new Map(); // label -> class of its group's colour
  let question = 0;

  async function ask(bytes, about) {
    const mine = ++question;
    const shape = inputs.shape.join(",");
    const headers = { "Content-Type": "application/octet-stream", "X-Shape": shape, "X-Dtype": inputs.dtype };
    answer.classList.add("asking");
    try {
      const said = await askJson(`/v1/predict?top_k=${SCORES}`, { method: "POST", body: bytes, headers });
      if (mine === question) show(said.predictions[0], said.model, about);
    } catch (error) {
      if (mine === question) fail(error.status ? error.message : "the daemon cannot be reached; try again when it is back");
    } finally {
      answer.classList.remove("asking");
    }
  }

  function show(prediction, model, { words, truth }) {
    const right = truth === undefined ? null : truth === prediction.label;
    answer.replaceChildren(
      el("p", { class: "said" }, el("strong", { text: prediction.label }), el("span", { text: ` ${percent(prediction.probability)} sure` })),
      ...(right === null ? [] : [el("p", { class: right ? "right" : "wrong", text: right ? "✓ as it was labelled" : `✗ it was labelled ${truth}` })]),
      el("ul", { class: "scores", "aria-label": "Scores" }, ...Object.entries(prediction.scores).map(([label, share]) => score(label, share))),
      el("p", { class: "muted", text: `${words ? `The picture was ${words}. ` : ""}Answered by version ${count(model.version)}.` }),
    );
  }

  function score(label, share) {
    const bar = el("i");
    bar.style.width = `${share * 100}%`;
    return el(
      "li",
      { class: `class-bar ${colours.get(label)?.class ?? ""}` },
      el("span", { class: "class-name", text: label, title: label }),
      el("span", { class: "track" }, bar),
      el("span", { class: "value", text: share < 0.005 ? "<1 %" : percent(share) }),
    );
  }

  function fail(message) {
    answer.replaceChildren(el("p", { class: "wrong", text: `${capital(message)}.` }));
  }

  async function tryPicture(blob, truth) {
    if (!isPicture(inputs)) return fail(inputs ? "this model learns from numbers, not from pictures" : "nothing has been learned yet");
    let picture;
    try {
      picture = await createImageBitmap(blob, { colorSpaceConversion: "none" });
    } catch {
      return fail("this is no picture that your browser can read");
    }
    const { bytes, words } = fitted(picture, inputs);
    paint(byId("try-picture"), bytes, inputs);
    byId("try-picture").setAttribute("aria-label", "The picture as the model sees it");
    drop.classList.add("filled");
    return ask(bytes, { words, truth });
  }

  function tryNumbers(text) {
    const numbers = text.split(/[\s,;[\]]+/).filter(Boolean).map(Number);
    if (!numbers.length || numbers.some((value) => !Number.isFinite(value))) return fail("write numbers such as 0.1, 2.5, 7");
    const wanted = inputs.shape.reduce((a, b) => a * b, 1);
    if (numbers.length !== wanted) return fail(`${count(numbers.length)} numbers; the model takes ${count(wanted)}`);
    return ask(inputs.dtype === "float32" ? new Float32Array(numbers) : new Uint8Array(numbers), {});
  }

  listen(drop, tryPicture);
  byId("try-ask").addEventListener("click", () => (inputs ? tryNumbers(byId("try-values").value) : fail("nothing has been learned yet")));
  return {
    show({ status, groups }) {
      inputs = status.inputs ?? inputs;
      colours = groups.ofClass;
      const pictures = !inputs || isPicture(inputs);
      drop.hidden = !pictures;
      byId("try-numbers").hidden = pictures;
      setText(byId("try-note"), inputs ? `The model takes ${inWords(inputs)}${pictures ? "; others are fitted" : ""}.` : "Nothing has been learned yet.");
    },
    tryExample({ blob, bytes, from }) {
      const narrow = !matchMedia("(min-width: 720px)").matches;
      if (narrow) byId("try").scrollIntoView({ behavior: "smooth" });
      if (blob === null) return fail("this example has made room for another one");
      if (blob) return tryPicture(blob, from.label);
      byId("try-values").value = Array.from(new Float32Array(bytes.buffer), (value) => +value.toPrecision(6)).join(", ");
      return ask(bytes, { truth: from.label });
    },
  };
}

// Choosing, dropping anywhere on the page, pasting.
function listen(drop, given) {
  const field = byId("try-file");
  field.addEventListener("change", () => {
    if (field.files[0]) given(field.files[0]);
    field.value = ""; // the same file may be chosen again
  });
  addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", (event) => event.relatedTarget === null && drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files[0]) given(event.dataTransfer.files[0]);
  });
  addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (file) given(file);
  });
}
