// Making and changing elements. Texts are set as texts only: labels come from anybody.

export const byId = (id) => document.getElementById(id);

export function el(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (name === "text") node.textContent = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

// Only where something changed: screen readers and selections are left in peace.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function setAttribute(node, name, value) {
  if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value);
}

const kept = new WeakMap();

// A list whose elements stay the same elements while their items do, so that focus and hover survive an update.
export function keyed(parent, items, keyOf, make, update) {
  const before = kept.get(parent) ?? new Map();
  const after = new Map();
  items.forEach((item, place) => {
    const key = keyOf(item);
    const node = before.get(key) ?? make(item);
    after.set(key, node);
    update(node, item, place);
    if (parent.children[place] !== node) parent.insertBefore(node, parent.children[place] ?? null);
  });
  for (const [key, node] of before) if (after.get(key) !== node) node.remove();
  kept.set(parent, after);
}

// Pairs of a name and a value; a value that is null is left out.
export function facts(list, pairs) {
  keyed(
    list,
    pairs.filter(([, value]) => value !== null),
    ([name]) => name,
    ([name]) => el("div", {}, el("dt", { text: name }), el("dd")),
    (node, [, value, title]) => {
      setText(node.lastChild, value);
      if (title) setAttribute(node.lastChild, "title", title);
    },
  );
}
