"use strict";

/* What each head does over a text, measured when the page was made. */

/** Return what was measured of a head, undefined if nothing was. */
function headRecord(kind, layer, head) {
  return PAGE.heads?.heads.find(
    (record) => record.kind === kind && record.layer === layer && record.head === head,
  );
}

/** Return the name of a model in a sentence. */
function modelPhrase({ name, step }) {
  if (name === "averaged") return "the averaged model";
  return name === String(step) ? `the checkpoint of ${step.toLocaleString("en")} updates` : `the model “${name}”`;
}

/** Return what a head of the last model does, empty if nothing is known. */
function rolesOf(kind, layer, head) {
  const known = headRecord(kind, layer, head);
  return known ? known.roles.join(", ") || "no clear role" : "";
}

function drawRoles() {
  const { text, num_lines: lines, loss, descriptions, thresholds, heads } = PAGE.heads;
  const measures = [...new Set(heads.flatMap((head) => Object.keys(head.measures)))];
  const columns = [
    ["layer", (head) => head.layer],
    ["head", (head) => head.head],
    ["what it does", (head) => (head.roles.length ? head.roles.join(", ") : null)],
    ["importance", (head) => head.importance],
    ...measures.map((name) => [name, (head) => head.measures[name]?.[0] ?? null]),
  ];
  const sorted = sortedHeads(heads.filter(({ kind }) => kind === state.kind), columns);
  const withRole = heads.filter((head) => head.roles.length).length;
  const importance = "Importance is the loss with the head switched off, minus the loss with all heads.";
  byId("other").append(
    element(
      "p", {},
      `Measured on ${lines.toLocaleString("en")} lines of ${text}, with ${modelPhrase(PAGE.models.at(-1))}; ` +
      `the loss with all heads is ${loss.toFixed(3)} nats a token. ` +
      `${withRole} of all ${heads.length} heads have a clear role. ${importance} ` +
      "A head has a role if a measure reaches the threshold that stands with it below. " +
      "The small number beside a value is chance.",
    ),
    element(
      "div", { class: "scroll", "data-label": "Heads" },
      element(
        "table", { id: "roles" },
        element("thead", {}, element("tr", {}, ...columns.map(([name]) => sortHeader(name)))),
        element("tbody", {}, ...sorted.map((head) => roleRow(head, measures))),
      ),
    ),
    element("h2", {}, "The measures"),
    element(
      "dl", { class: "facts" },
      ...Object.entries(descriptions).map(([name, description]) =>
        element("div", {}, element("dt", {}, name), element("dd", {}, description, ` ${thresholds[name] ?? "Decides no role."}`)),
      ),
    ),
  );
}

/** Return the heads in the order of `state.rolesSort`: largest numbers or first words first. */
function sortedHeads(heads, columns) {
  const isReversed = state.rolesSort.startsWith("-");
  const [, valueOf] = columns.find(([name]) => name === state.rolesSort.replace(/^-/, "")) ?? [];
  if (!valueOf) return heads;
  return [...heads].sort((one, other) => {
    const [a, b] = [valueOf(one), valueOf(other)];
    // What is not known comes last in both orders.
    if (a === null || b === null) return (a === null) - (b === null);
    const order = typeof a === "string" ? a.localeCompare(b) : b - a;
    return isReversed ? -order : order;
  });
}

/** Return the head of a column: a button that sorts by it, or reverses the order. */
function sortHeader(name) {
  const isSorted = state.rolesSort.replace(/^-/, "") === name;
  const isReversed = state.rolesSort.startsWith("-");
  const isText = name === "what it does";
  const direction = isReversed !== isText ? "ascending" : "descending";
  const button = element(
    "button", { type: "button", class: "plain", "data-key": `sort-${name}` },
    name, element("span", { "aria-hidden": "true" }, isSorted ? { ascending: " ↑", descending: " ↓" }[direction] : ""),
  );
  button.addEventListener("click", () => change({ rolesSort: isSorted && !isReversed ? `-${name}` : name }));
  return element("th", { scope: "col", "aria-sort": isSorted ? direction : null }, button);
}

function roleRow(record, measures) {
  const { kind, layer, head, roles, importance } = record;
  const open = element(
    "button",
    { type: "button", class: "plain", "aria-label": `Show ${KINDS[kind].short}, layer ${layer}, head ${head}` },
    head,
  );
  open.addEventListener("click", () => change({ view: "lines", kind, layer, heads: [head], pinned: null }));
  return element(
    "tr", { "data-head": `${kind}-${layer}-${head}` },
    element("td", {}, layer),
    element("td", {}, open),
    roles.length
      ? element("td", { class: "role" }, roles.join(", "))
      : element("td", { class: "hint" }, "no clear role"),
    element("td", {}, importance === null ? "–" : decimal(importance, 4)),
    ...measures.map((name) => {
      const [value, chance] = record.measures[name] ?? [null, null];
      if (value === null) return element("td", {}, "–");
      const small = chance === null ? null : element("small", {}, ` ${decimal(chance, 2)}`);
      return element("td", {}, decimal(value, 2), small);
    }),
  );
}
