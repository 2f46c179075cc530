// The one small box that tells values beside the pointer. What it says is in labels for screen readers as well.

import { byId } from "./dom.js";

const GAP = 14;

export function showTip(children, x, y) {
  const tip = byId("tip");
  tip.replaceChildren(...children);
  tip.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = tip;
  const room = document.documentElement.clientWidth;
  const left = x + GAP + width < room ? x + GAP : x - GAP - width;
  tip.style.left = `${Math.max(4, Math.min(left, room - width - 4))}px`;
  tip.style.top = `${Math.max(4, Math.min(y + GAP, innerHeight - height - 4))}px`;
}

export function hideTip() {
  byId("tip").hidden = true;
}

// The tip of an element: `content` is asked when it is needed. By pointer, by finger and by keyboard.
export function tipFor(node, content) {
  const beside = () => {
    const box = node.getBoundingClientRect();
    showTip(content(), box.right - 6, box.bottom - 6);
  };
  node.addEventListener("pointerenter", beside);
  node.addEventListener("pointerleave", hideTip);
  node.addEventListener("focus", () => node.matches(":focus-visible") && beside());
  node.addEventListener("blur", hideTip);
}

addEventListener("scroll", hideTip, { passive: true, capture: true });
