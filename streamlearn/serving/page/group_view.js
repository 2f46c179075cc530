// Class groups as all parts of the page see them: in order of arrival, each with its colour; of many, the newest ten by
// themselves and the older ones as one.

export const SHOWN = 10;
export const OLDER = "older";

// -> {rows: [{name, classes, class (of its colour), members: [names]}], of: group name -> row, ofClass: label -> row}
export function groupView(status) {
  const groups = status?.groups ?? [];
  const merged = Math.max(0, groups.length - SHOWN);
  const rows = [];
  if (merged) {
    const older = groups.slice(0, merged);
    rows.push({
      name: OLDER,
      label: `${merged} older groups`,
      classes: older.flatMap((group) => group.classes),
      class: "g-older",
      members: older,
    });
  }
  groups.slice(merged).forEach((group, k) => {
    rows.push({ name: group.name, label: group.name, classes: group.classes, class: colourOf(merged + k), members: [group] });
  });
  const of = new Map(rows.flatMap((row) => row.members.map((group) => [group.name, row])));
  const ofClass = new Map(rows.flatMap((row) => row.classes.map((label) => [label, row])));
  return { rows, of, ofClass, all: groups };
}

export const colourOf = (place) => `g${place % SHOWN}`;

export function mean(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  return known.length ? known.reduce((sum, value) => sum + value, 0) / known.length : null;
}

// One number of a row: of its group, or the mean of those that were merged.
export const ofRow = (row, pick) => mean(row.members.map(pick));

// A list of the history for a row: what its groups had at each point, on average.
export function historyOf(row, history, name) {
  const lists = row.members.map((group) => history.groups[group.name]).filter(Boolean);
  return history.examples.map((_, place) => {
    const values = lists.map((one) => (place < one.from ? null : (one[name]?.[place - one.from] ?? null)));
    return mean(values);
  });
}

export const sum = (values) => values.reduce((total, value) => total + (value ?? 0), 0);
