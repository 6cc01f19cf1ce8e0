"use strict";

/* The largest weights of what is drawn, as a table. */

/** Fill the table; a chosen token leaves its own weights only. */
function drawLargest({ rows, columns, matrices }, chosen) {
  const entries = [];
  // A matrix shows every weight, lines those above the threshold.
  const least = Math.max(state.view === "lines" ? state.threshold : 0, 0.5 / PAGE.levels);
  for (const [head, matrix] of matrices) {
    matrix.forEach((weights, row) => {
      if (chosen?.side === "rows" && chosen.index !== row) return;
      weights.forEach((weight, column) => {
        if (chosen?.side === "columns" && chosen.index !== column) return;
        if (weight >= least) entries.push({ head, row, column, weight });
      });
    });
  }
  entries.sort((one, other) => other.weight - one.weight);
  const cell = (side, token) =>
    element("td", { lang: languageOf(KINDS[state.kind][side]), dir: "auto" }, displayText(token.text));
  const body = entries.slice(0, state.count).map(({ head, row, column, weight }, place) =>
    element(
      "tr",
      { "data-row": row, "data-column": column, "data-head": head },
      element("td", {}, place + 1),
      cell("rows", rows[row]),
      cell("columns", columns[column]),
      element("td", {}, head),
      element("td", {}, element("data", { value: weight }, weight.toFixed(3))),
    ),
  );
  const names = ["", "token", "looks at", "head", "weight"];
  const header = names.map((name) =>
    name ? element("th", { scope: "col" }, name) : element("td", {}),
  );
  const caption = entries.length > state.count
    ? `The ${state.count} largest of ${entries.length.toLocaleString("en")} weights shown, layer ${state.layer}.`
    : `The weights shown, layer ${state.layer}, largest first: ${entries.length || "none"}.`;
  byId("largest").replaceChildren(
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...header)),
    element("tbody", {}, ...body),
  );
}
