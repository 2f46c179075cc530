// What a chart tells where one points: all values at that place, and what was marked near it.

import { el, svg } from "./dom.js";
import { nearest } from "./scales.js";
import { hideTip, showTip } from "./tip.js";
import { capital, count, listed } from "./words.js";

const MARK_REACH = 8; // pixels

export function hover(drawing, options) {
  let view = null;
  let at = null; // the place in the data that is told
  const rule = svg("line", { class: "hover-rule" });
  const dots = svg("g", {});

  function tell(place, clientX, clientY) {
    const { data, x, y, top, bottom } = view;
    at = place;
    const across = x(data.x[place]);
    for (const [name, value] of [["x1", across], ["x2", across], ["y1", top], ["y2", bottom]]) rule.setAttribute(name, value);
    const rows = data.series
      .map((one) => ({ one, value: valueAt(one.values, place) }))
      .filter(({ value }) => value !== null)
      .sort((a, b) => b.value - a.value);
    dots.replaceChildren(
      ...rows.map(({ one, value }) => svg("circle", { cx: across, cy: y(value), r: 3.5, class: `dot ${one.class}` })),
    );
    drawing.append(rule, dots);
    showTip(content(place, rows, across), clientX, clientY);
  }

  function content(place, rows, across) {
    const { data, x } = view;
    const near = (data.marks ?? []).filter((mark) => Math.abs(x(mark.examples) - across) < MARK_REACH);
    const classes = near.filter((mark) => mark.kind === "new-class").flatMap((mark) => mark.labels ?? []);
    const refit = near.find((mark) => mark.kind === "bias-refit");
    return [
      el("strong", { text: `after ${count(data.x[place])} examples` }),
      ...rows.map(({ one, value }) =>
        el(
          "div",
          { class: "tip-row" },
          el("span", { class: `swatch ${one.class}` }),
          el("span", { class: "tip-name", text: one.label ?? one.name }),
          el("span", { class: "tip-value", text: options.format(value) }),
        ),
      ),
      ...(classes.length ? [el("div", { class: "tip-note", text: `▾ new: ${listed(classes, 4)}` })] : []),
      ...(refit ? [el("div", { class: "tip-note", text: `◆ bias refit${refit.cause ? `: ${capital(refit.cause)}` : ""}` })] : []),
    ];
  }

  function leave() {
    at = null;
    rule.remove();
    dots.remove();
    hideTip();
  }

  const usable = () => view?.data.x.length > 0;
  drawing.addEventListener("pointermove", (event) => {
    if (!usable()) return;
    const box = drawing.getBoundingClientRect();
    const place = nearest(view.data.x, view.x.back(event.clientX - box.left));
    tell(place, event.clientX, event.clientY);
  });
  drawing.addEventListener("pointerleave", leave);
  drawing.addEventListener("blur", leave);
  drawing.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (event.key === "Escape") leave();
    if (!step || !usable()) return;
    event.preventDefault();
    const last = view.data.x.length - 1;
    const place = Math.max(0, Math.min(last, (at ?? last) + step));
    const box = drawing.getBoundingClientRect();
    tell(place, box.left + view.x(view.data.x[place]), box.top + 40);
  });
  return {
    reset(fresh) {
      view = fresh;
      if (at !== null) drawing.append(rule, dots); // drawn anew under the pointer
    },
  };
}

// The last value known by then.
function valueAt(values, place) {
  for (let k = place; k >= 0; k--) if (values[k] !== null && values[k] !== undefined) return values[k];
  return null;
}
