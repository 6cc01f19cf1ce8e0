"use strict";

/* The weights of one head as a matrix: a row for each token that looks. */

/* The matrix as it stands: its head, its tokens and the places of its cells. */
let matrix = null;

function drawMatrix() {
  const { rows, columns, matrices } = currentWeights();
  const head = state.heads[0];
  const drawing = byId("drawing");
  if (head === undefined || !rows.length || !columns.length) {
    drawing.replaceChildren();
    byId("caption").textContent = "Switch on a head to see its matrix.";
    byId("summary").textContent = "";
    drawLargest({ rows, columns, matrices: new Map() }, null);
    return;
  }
  const text = (token) => fitText(displayText(token.text), LONGEST, SIZE);
  const longest = (tokens) => Math.ceil(Math.max(...tokens.map((token) => textWidth(text(token), SIZE))));
  const left = longest(rows) + 2 * MARGIN;
  const top = longest(columns) + 2 * MARGIN;
  const room = (byId("main").clientWidth - left - 4 * MARGIN) / columns.length;
  const pitch = Math.floor(Math.max(16, Math.min(34, room)));
  const width = left + columns.length * pitch + 4 * MARGIN;
  const height = top + rows.length * pitch + MARGIN;
  matrix = { head, rows, columns, weights: matrices.get(head), left, top, pitch, width, cell: null };

  const { kind } = state;
  const label = (side, token, place) => {
    const along = (place + 0.5) * pitch;
    const transform = side === "rows"
      ? `translate(${left - GAP} ${top + along})`
      : `translate(${left + along} ${top - GAP}) rotate(-90)`;
    const attributes = {
      transform, dy: "0.35em", "text-anchor": side === "rows" ? "end" : "start",
      "font-size": SIZE, lang: languageOf(KINDS[kind][side]), "data-side": side, "data-index": place,
    };
    return svg("text", attributes, text(token));
  };
  const cells = matrix.weights.flatMap((weights, row) =>
    weights.map((weight, column) =>
      svg("rect", {
        class: "cell", x: left + column * pitch, y: top + row * pitch,
        width: pitch - 1, height: pitch - 1, fill: "var(--ramp)",
        "fill-opacity": Math.min(1, weight).toFixed(3),
        "data-row": row, "data-column": column,
      }),
    ),
  );
  const picture = svg(
    "svg",
    {
      id: "matrix", class: "drawing", width, height, viewBox: `0 0 ${width} ${height}`,
      role: "img", tabindex: 0, "data-key": "matrix", "aria-label": captionText([head]),
    },
    svg("rect", {
      class: "field-of-cells", x: left - 1, y: top - 1,
      width: columns.length * pitch + 1, height: rows.length * pitch + 1,
    }),
    ...cells,
    ...rows.map((token, place) => label("rows", token, place)),
    ...columns.map((token, place) => label("columns", token, place)),
    svg("g", { id: "reading" }),
  );
  listenToCells(picture);
  drawing.replaceChildren(picture);
  byId("caption").replaceChildren(
    element("strong", {}, captionText([head])),
    ` The tokens at the left look at those above. ${marksText()}`.trimEnd(),
  );
  pointAtCell(null);
  drawLargest({ rows, columns, matrices: new Map([[head, matrix.weights]]) }, null);
}

function listenToCells(picture) {
  const cellOf = ({ target }) => {
    const { row, column } = target.dataset;
    return column === undefined ? null : { row: Number(row), column: Number(column) };
  };
  let isTouch = false;
  picture.addEventListener("pointerdown", ({ pointerType }) => {
    isTouch = pointerType === "touch";
  });
  picture.addEventListener("pointermove", (event) => {
    if (event.pointerType !== "touch") pointAtCell(cellOf(event));
  });
  picture.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType !== "touch") pointAtCell(null);
  });
  picture.addEventListener("click", (event) => {
    const cell = cellOf(event);
    const isPointedAt = cell && cell.row === matrix.cell?.row && cell.column === matrix.cell.column;
    // A finger cannot point: its first tap does.
    if (isTouch && !isPointedAt) pointAtCell(cell);
    else openRow();
  });
  picture.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in steps) {
      const [down, right] = matrix.cell ? steps[event.key] : [0, 0];
      const { row, column } = matrix.cell ?? { row: 0, column: 0 };
      pointAtCell({
        row: Math.max(0, Math.min(matrix.rows.length - 1, row + down)),
        column: Math.max(0, Math.min(matrix.columns.length - 1, column + right)),
      });
    } else if (event.key === "Enter") openRow();
    else return;
    event.preventDefault();
  });
}

/** Show the number of a cell, or of none. */
function pointAtCell(cell) {
  matrix.cell = cell;
  const { head, rows, columns, weights, left, top, pitch } = matrix;
  for (const label of byId("matrix").querySelectorAll("text[data-side]")) {
    const place = { rows: cell?.row, columns: cell?.column }[label.dataset.side];
    label.classList.toggle("chosen", place === Number(label.dataset.index));
  }
  if (!cell) {
    byId("reading").replaceChildren();
    byId("summary").textContent = "Point at a cell or tap it to see its weight, or move by the arrow keys. A click, a second tap or Enter shows the row as lines.";
    return;
  }
  const [x, y] = [left + cell.column * pitch, top + cell.row * pitch];
  const weight = weights[cell.row][cell.column];
  byId("reading").replaceChildren(
    svg("rect", { class: "ring", x: x - 1, y: y - 1, width: pitch + 1, height: pitch + 1 }),
    svg("rect", { class: "plate", x: x + pitch + 4, y: y + pitch / 2 - 11, width: 40, height: 22, rx: 4 }),
    svg("text", { class: "number", x: x + pitch + 24, y: y + pitch / 2, dy: "0.35em", "text-anchor": "middle", "font-size": 12 }, weight.toFixed(2)),
  );
  byId("summary").textContent =
    `“${isolate(plainText(rows[cell.row].text))}” looks at “${isolate(plainText(columns[cell.column].text))}” ` +
    `with weight ${weight.toFixed(3)} in head ${head} of layer ${state.layer}.`;
}

/** Show the row of the cell as lines. */
function openRow() {
  if (!matrix.cell) return;
  change({ view: "lines", heads: [matrix.head], pinned: { side: "rows", index: matrix.cell.row } });
}
