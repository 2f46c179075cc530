// Numbers and times as people read them.

const whole = new Intl.NumberFormat("en");

export const count = (n) => (n === null || n === undefined ? "–" : whole.format(Math.round(n)));

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export const percent = (share) => (share === null || share === undefined ? "–" : `${Math.round(share * 100)}\u00a0%`);

export const points = (share) => (share === null || share === undefined ? "–" : count(share * 100));

export function brief(n) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(n) >= size) {
      const scaled = n / (unit === "k" ? 1e3 : size);
      return `${scaled >= 100 ? Math.round(scaled) : +scaled.toFixed(1)}${unit}`;
    }
  }
  return count(n);
}

export function significant(n, digits = 3) {
  if (n === null || n === undefined) return "–";
  return Math.abs(n) >= 1e-4 || n === 0 ? String(+n.toPrecision(digits)) : n.toExponential(1);
}

export function bytes(n) {
  if (n === null || n === undefined) return null;
  if (n < 1e3) return `${n} B`;
  if (n < 1e6) return `${+(n / 1e3).toPrecision(3)} kB`;
  return n < 1e9 ? `${+(n / 1e6).toPrecision(3)} MB` : `${+(n / 1e9).toPrecision(3)} GB`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || Number.isNaN(seconds)) return "–";
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${plural(Math.floor(s / 86400), "day")} ${Math.floor((s % 86400) / 3600)} h`;
}

export const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

export function listed(names, most = 3) {
  if (names.length <= most) return names.join(", ");
  return `${names.slice(0, most - 1).join(", ")} and ${names.length - most + 1} more`;
}

export const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, most - 1)}…`);

export const capital = (text) => (text ? text[0].toUpperCase() + text.slice(1) : text);
