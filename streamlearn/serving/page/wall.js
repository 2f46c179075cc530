// The wall of what is remembered: pictures, or small lines for feature vectors. Asked for in pages, and again from time
// to time; a picture is asked for once, for what is in a slot can be told by when it arrived.

import { ask, askJson } from "./api.js";
import { byId, el, keyed, setAttribute } from "./dom.js";
import { fromBase64, isPicture, numbersOf } from "./inputs.js";
import { sparkline } from "./sparkline.js";
import { tipFor } from "./tip.js";
import { token } from "./token.js";
import { count, plural, significant } from "./words.js";

const PAGE = 60;
const MOST = 1000; // on the wall at once
const HIGH_LOSS = 3;

export function startWall(tried) {
  const wall = byId("wall");
  const more = byId("wall-more");
  let wanted = PAGE;
  let label = "";
  let inputs = null;
  let loading = null;

  more.addEventListener("click", async () => {
    wanted = Math.min(wanted + PAGE, MOST);
    more.disabled = true;
    await load();
    more.disabled = false;
  });

  function load() {
    loading ??= fetchPages().finally(() => (loading = null));
    return loading;
  }

  async function fetchPages() {
    const pictures = isPicture(inputs);
    const chosen = label;
    const examples = [];
    let next = null;
    let total = 0;
    do {
      const query = new URLSearchParams({ limit: wanted - examples.length });
      if (chosen) query.set("label", chosen);
      if (next !== null) query.set("after", next);
      if (!pictures) query.set("inputs", 1);
      const page = await askJson(`/v1/buffer?${query}`);
      examples.push(...page.examples);
      ({ next, total } = page);
    } while (next !== null && examples.length < wanted);
    if (chosen !== label) return;
    wall.classList.toggle("lines", !pictures);
    keyed(wall, examples, (one) => `${one.slot}:${one.arrival}`, (one) => tile(one, pictures), refresh);
    more.hidden = next === null || wanted >= MOST;
    more.textContent = `Load more (${count(examples.length)} of ${count(total)})`;
  }

  function tile(example, pictures) {
    const button = el("button", { type: "button", class: "tile" });
    const node = el("li", {}, button);
    node.example = example;
    if (pictures) button.append(picture(example));
    else button.append(sparkline(numbersOf(example.input)), el("span", { class: "tile-label", text: example.label }));
    button.addEventListener("click", () => tryOut(node.example, pictures));
    tipFor(button, () => words(node.example));
    return node;
  }

  async function tryOut(example, pictures) {
    if (!pictures) return tried({ bytes: fromBase64(example.input.bytes), from: example });
    const image = await ask(source(example), { cache: "default" });
    return tried({ blob: image.status === 204 ? null : await image.blob(), from: example });
  }

  return {
    load,
    choose(chosen) {
      label = chosen;
      wanted = PAGE;
      loading = null;
      return load();
    },
    learns(fresh) {
      inputs = fresh;
    },
  };
}

function refresh(node, example) {
  node.example = { ...example, input: node.example.input ?? example.input };
  const button = node.firstChild;
  button.querySelector("img.gone")?.replaceWith(picture(example)); // the learner was away, perhaps
  button.style.setProperty("--heat", Math.min(1, example.loss / HIGH_LOSS).toFixed(3));
  setAttribute(button, "aria-label", `${example.label}, loss ${significant(example.loss, 2)}, ${plural(example.age, "example")} ago`);
}

const words = (example) => [
  el("strong", { text: example.label }),
  el("div", { text: `loss ${significant(example.loss, 2)}` }),
  el("div", { text: `${plural(example.age, "example")} ago` }),
  ...(example.id ? [el("div", { class: "muted", text: `id ${example.id}` })] : []),
];

const source = (example) => `/v1/buffer/${example.slot}/image?arrival=${example.arrival}`;

function picture(example) {
  const image = el("img", { alt: "", loading: "lazy", decoding: "async", width: 56, height: 56 });
  image.addEventListener("error", () => image.classList.add("gone")); // evicted since: the next look shows what came
  if (token() === null) image.src = source(example);
  else {
    ask(source(example), { cache: "default" })
      .then((answer) => answer.blob())
      .then((blob) => {
        image.src = URL.createObjectURL(blob);
        image.addEventListener("load", () => URL.revokeObjectURL(image.src), { once: true });
      })
      .catch(() => image.classList.add("gone"));
  }
  return image;
}
