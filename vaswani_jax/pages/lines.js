"use strict";

/* The paper's drawing (figures 3 to 5): two rows of tokens, with lines between them.

The line from a token to one that it looks at has the colour of the head, and is as
opaque as the weight. Positions are measured along the rows and across them, from the
tokens that look to those looked at: upright words upwards, columns to the right. */

const SIZE = 13; // Of the letters.
const PITCH = 22; // From token to token, at least.
const WIDEST_PITCH = 60;
const MARGIN = 14;
const GAP = 6; // Between a token and its lines.
const NUMBERS = 34; // Room for a weight beyond a token.
const LONGEST = 170; // What is longer is cut.

/* The drawing as it stands: what a choice of a token needs to redraw its lines. */
let lines = null;

/** Return the colour and the dashes of a head: colours repeat after eight. */
function styleOfHead(head) {
  const dashes = ["none", "5 3", "2 2", "8 2 2 2"];
  return {
    color: `var(--head-${((head - 1) % 8) + 1})`,
    on: `var(--on-head-${((head - 1) % 8) + 1})`,
    dashes: dashes[Math.floor((head - 1) / 8) % dashes.length],
  };
}

/** Draw the tokens of both sides and all lines. */
function drawLines() {
  const shown = currentWeights();
  const isUpright = currentLayout() === "upright";
  const texts = {};
  const widths = {};
  for (const side of ["rows", "columns"]) {
    texts[side] = shown[side].map((token) => fitText(displayText(token.text), LONGEST, SIZE));
    widths[side] = Math.ceil(Math.max(20, ...texts[side].map((text) => textWidth(text, SIZE))));
  }
  const room = byId("main").clientWidth - 2 * (NUMBERS + GAP) - widths.rows - widths.columns;
  const span = isUpright ? 250 : Math.min(380, Math.max(110, room - 4));
  // Across: numbers, tokens that look, lines, tokens that are looked at, numbers.
  const start = NUMBERS + widths.rows + GAP;
  const end = start + span;
  const across = Math.ceil(end + GAP + widths.columns + NUMBERS);
  const count = Math.max(shown.rows.length, shown.columns.length, 1);
  // A short sentence takes the room that is there.
  const widest = Math.floor((byId("main").clientWidth - 2 * MARGIN) / count);
  const pitch = isUpright ? Math.max(PITCH, Math.min(WIDEST_PITCH, widest)) : PITCH;
  const along = 2 * MARGIN + count * pitch;
  // Text from right to left begins at the right edge.
  const isReversed = {
    rows: isUpright && isRightToLeft(shown.rows),
    columns: isUpright && isRightToLeft(shown.columns),
  };
  lines = { shown, isUpright, isReversed, start, end, texts, widths, along, across, pitch };

  const size = isUpright ? { width: along, height: across } : { width: across, height: along };
  const image = svg("g", { role: "img", id: "image" });
  const picture = svg(
    "svg",
    { id: "lines", role: "group", "aria-label": "Tokens and lines", ...size, viewBox: `0 0 ${size.width} ${size.height}`, class: "drawing" },
    image, drawTokens("rows"), drawTokens("columns"),
  );
  listenToTokens(picture);
  byId("drawing").replaceChildren(picture);
  drawChoice();
}

/** Return the place of a token along its row. */
function placeOf(side, index) {
  const isReversed = lines.isReversed[side];
  const { pitch } = lines;
  const last = lines.shown[side].length - 1;
  const offset = lines.along - 2 * MARGIN - (last + 1) * pitch;
  const place = isReversed ? last - index : index;
  return MARGIN + (isReversed ? offset : 0) + (place + 0.5) * pitch;
}

/** Return the coordinates of a place along and across the rows. */
function pointAt(along, across) {
  return lines.isUpright ? [along, lines.across - across] : [across, along];
}

/** Return a rectangle around a place along, from one place across to another. */
function boxAt(along, from, to, attributes) {
  const thickness = attributes.thickness ?? PITCH;
  const [x, y] = pointAt(along - thickness / 2, lines.isUpright ? to : from);
  const sizes = [thickness, to - from];
  const [width, height] = lines.isUpright ? sizes : sizes.reverse();
  return svg("rect", { x, y, width, height, ...attributes, thickness: null });
}

/** Return a text at a place, upright with the words; `anchor` is its end there. */
function textAt(along, across, anchor, attributes, text) {
  const [x, y] = pointAt(along, across);
  const turn = lines.isUpright ? " rotate(-90)" : "";
  return svg(
    "text",
    {
      transform: `translate(${x} ${y})${turn}`,
      // Turned words read upwards, the way across.
      "text-anchor": anchor,
      dy: "0.35em",
      ...attributes,
    },
    text,
  );
}

function drawTokens(side) {
  const isRows = side === "rows";
  const { start, end, widths, texts } = lines;
  const bounds = isRows
    ? [start - GAP - widths.rows - 2, start - 2]
    : [end + 2, end + GAP + widths.columns + 2];
  const options = lines.shown[side].map((token, index) => {
    const along = placeOf(side, index);
    return svg(
      "g",
      {
        role: "option", class: "token", tabindex: index === 0 ? 0 : -1,
        "aria-selected": false, "aria-label": plainText(token.text),
        "data-key": `${side}-${index}`, "data-side": side, "data-index": index,
      },
      svg("title", {}, token.text),
      boxAt(along, ...bounds, { class: "ground", rx: 3 }),
      textAt(
        along, isRows ? start - GAP : end + GAP, isRows ? "end" : "start",
        { lang: languageOf(KINDS[state.kind][side]), "font-size": SIZE },
        texts[side][index],
      ),
    );
  });
  const label = isRows ? "Tokens that look" : "Tokens that are looked at";
  return svg(
    "g",
    { role: "listbox", "aria-label": label, "aria-orientation": lines.isUpright ? "horizontal" : "vertical", id: side },
    ...options,
  );
}

/** Draw the lines: of the chosen token, or all of them. */
function drawChoice() {
  const { shown, start, end } = lines;
  const chosen = chosenToken();
  const strip = state.heads.length * (state.heads.length > 8 ? 4 : 6);
  const children = [];
  const weights = { rows: new Map(), columns: new Map() };
  // The lines of two heads from a token to the same one lie side by side.
  const between = Math.min(2.4, (PITCH - 6) / Math.max(1, state.heads.length));
  [...shown.matrices].forEach(([head, matrix], order) => {
    const { color, dashes } = styleOfHead(head);
    const shift = (order - (state.heads.length - 1) / 2) * between;
    matrix.forEach((row, rowIndex) =>
      row.forEach((weight, columnIndex) => {
        if (chosen && chosen.index !== (chosen.side === "rows" ? rowIndex : columnIndex)) return;
        const other = chosen?.side === "rows" ? columnIndex : rowIndex;
        if (chosen) {
          const side = chosen.side === "rows" ? "columns" : "rows";
          const list = weights[side].get(other) ?? [];
          weights[side].set(other, [...list, { head, weight }]);
        }
        // What rounds to nothing has no line, even with no threshold.
        if (weight < Math.max(state.threshold, 0.5 / PAGE.levels)) return;
        const from = chosen?.side === "columns" ? start + strip : start;
        const to = chosen?.side === "rows" ? end - strip : end;
        const [x1, y1] = pointAt(placeOf("rows", rowIndex) + shift, from);
        const [x2, y2] = pointAt(placeOf("columns", columnIndex) + shift, to);
        children.push(
          svg("line", {
            class: "weight", x1, y1, x2, y2, stroke: color, "stroke-width": Math.max(chosen ? 2 : 1.5, Math.min(3, between)),
            "stroke-opacity": Math.min(1, weight).toFixed(3), "stroke-dasharray": dashes,
            "data-head": head, "data-row": rowIndex, "data-column": columnIndex,
          }),
        );
      }),
    );
  });
  for (const side of ["rows", "columns"]) {
    for (const [index, list] of weights[side]) children.push(...drawCells(side, index, list, strip));
  }
  byId("image").replaceChildren(...children);
  byId("image").setAttribute("aria-label", `${captionText()} ${choiceText()}`.trim());
  markTokens();
  drawCaption();
  byId("summary").textContent = summaryText();
  drawLargest(shown, chosen);
}

/** Return a cell for each head beside a token, and the largest weight as a number. */
function drawCells(side, index, list, strip) {
  const { start, end, widths } = lines;
  const along = placeOf(side, index);
  const depth = strip / list.length;
  const cells = list.map(({ head, weight }, place) => {
    // The first head is the one nearest to the token.
    const from = side === "rows" ? start + place * depth : end - (place + 1) * depth;
    return boxAt(along, from, from + depth, {
      class: "cell", thickness: PITCH - 6, fill: styleOfHead(head).color,
      "fill-opacity": Math.min(1, weight).toFixed(3), "data-head": head,
    });
  });
  const frame = side === "rows" ? [start, start + strip] : [end - strip, end];
  cells.push(boxAt(along, ...frame, { class: "frame", thickness: PITCH - 6 }));
  const largest = Math.max(...list.map(({ weight }) => weight));
  if (largest >= Math.max(state.threshold, 0.005)) {
    const across = side === "rows" ? start - GAP - widths.rows - 5 : end + GAP + widths.columns + 5;
    cells.push(
      textAt(
        along, across, side === "rows" ? "end" : "start",
        { class: "number", "font-size": 11 }, largest.toFixed(2),
      ),
    );
  }
  return cells;
}

function markTokens() {
  const chosen = chosenToken();
  for (const option of byId("drawing").querySelectorAll("[role=option]")) {
    const isOption = (token) =>
      token?.side === option.dataset.side && token.index === Number(option.dataset.index);
    option.setAttribute("aria-selected", isOption(state.pinned));
    option.classList.toggle("chosen", isOption(chosen));
  }
}

/** Return what the drawing shows of some heads, in words. */
function captionText(shown = state.heads) {
  const { layers, heads } = sizesOf(currentView(), state.kind);
  const which = { 0: "no head", 1: `head ${shown[0]}` }[shown.length] ?? `heads ${joinNumbers(shown)}`;
  const of = shown.length === heads ? "" : ` of ${heads}`;
  return `${KINDS[state.kind].name}, layer ${state.layer} of ${layers}, ${which}${of}.`;
}

/**
 * Return what the drawing shows of the chosen token, empty if there is none.
 *
 * It stands below the drawing: above, it would move the tokens under the pointer.
 */
function choiceText() {
  const chosen = state.view === "lines" ? chosenToken() : null;
  if (!chosen) return "";
  const text = isolate(plainText(lines.shown[chosen.side][chosen.index].text));
  return chosen.side === "rows" ? `Only from “${text}”.` : `Only to “${text}”.`;
}

function drawCaption() {
  const names = {
    encoder: "",
    decoder: "Tokens are those that the decoder reads, from the begin mark on.",
    memory: "A token that looks is the one that the decoder predicts there.",
  }[state.kind];
  const parts = [
    lines.isUpright ? "The lower row looks at the upper." : "The left column looks at the right.",
    state.unit === "words" ? "" : names,
    marksText(),
  ];
  byId("caption").replaceChildren(
    element("strong", {}, captionText()), ` ${parts.filter(Boolean).join(" ")}`,
  );
}

/** Return what became of the weights on begin and end marks. */
function marksText() {
  return {
    shown: "",
    hidden: "The marks are hidden with their weights: rows sum to less than 1.",
    rescaled: `The marks are hidden, and each row is rescaled to sum to 1, unless less than ${LEAST_TOTAL} of it is left.`,
  }[state.marks];
}

/** Return the weights of the chosen token as a sentence, which a screen reader reads. */
function summaryText() {
  const chosen = chosenToken();
  if (!state.heads.length) return "Switch on a head to see what it looks at.";
  if (!chosen && !byId("image").querySelector("line")) {
    return `No weight of these heads reaches ${state.threshold.toFixed(2)}: lower “Hide weights below”.`;
  }
  if (!chosen) {
    return "Point at a token to see only its lines; click or tap to pin it. Tab, arrow keys and Enter do the same.";
  }
  const { shown } = lines;
  const isRow = chosen.side === "rows";
  const others = isRow ? shown.columns : shown.rows;
  const most = state.heads.length > 8 ? 1 : state.heads.length > 4 ? 2 : 4;
  const heads = [...shown.matrices].map(([head, matrix]) => {
    const weights = isRow ? matrix[chosen.index] : matrix.map((row) => row[chosen.index]);
    const largest = weights
      .map((weight, index) => ({ weight, index }))
      .filter(({ weight }) => weight >= Math.max(state.threshold, 0.005))
      .sort((one, other) => other.weight - one.weight)
      .slice(0, most)
      .map(({ weight, index }) => `${isolate(plainText(others[index].text))} ${weight.toFixed(2)}`);
    return `head ${head}: ${largest.join(", ") || "nothing"}`;
  });
  const text = isolate(plainText(shown[chosen.side][chosen.index].text));
  const verb = isRow ? "looks at" : "is looked at by";
  const numbers = heads.length > 1 ? " A number in the drawing is the largest weight of the heads." : "";
  return `“${text}” in layer ${state.layer} ${verb}: ${heads.join("; ")}.${probabilityText(chosen)}${numbers}`;
}

/** Return the probability of a token that the decoder predicts. */
function probabilityText({ side, index }) {
  if (KINDS[state.kind][side] !== "target_out") return "";
  const { positions } = lines.shown[side][index];
  const log = positions.reduce((sum, position) => sum + currentView().log_probs[position], 0);
  return ` It is predicted with probability ${Math.exp(log).toFixed(2)}.`;
}

/** Let the tokens be pointed at, reached by keys, and pinned. */
function listenToTokens(picture) {
  const tokenOf = (event) => {
    const option = event.target.closest("[role=option]");
    return option && { side: option.dataset.side, index: Number(option.dataset.index) };
  };
  const point = (event) => {
    pointed = tokenOf(event);
    drawChoice();
  };
  picture.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "touch") point(event);
  });
  picture.addEventListener("pointerleave", () => {
    pointed = null;
    drawChoice();
  });
  picture.addEventListener("focusin", point);
  picture.addEventListener("focusout", () => {
    pointed = null;
    drawChoice();
  });
  picture.addEventListener("click", (event) => {
    const token = tokenOf(event);
    if (token) pin(token);
  });
  picture.addEventListener("keydown", (event) => {
    const token = tokenOf(event);
    if (!token || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") pin(token);
    else if (!moveFocus(token, event.key)) return;
    event.preventDefault();
  });
}

/** Pin a token, or unpin it: then all lines are shown, until a token is pointed at. */
function pin(token) {
  const isPinned = state.pinned?.side === token.side && state.pinned.index === token.index;
  state.pinned = isPinned ? null : token;
  if (isPinned) pointed = null;
  writeFragment();
  drawChoice();
}

/** Move the focus from a token by an arrow key; return whether the key did so. */
function moveFocus({ side, index }, key) {
  const [back, forward, ...turn] = lines.isUpright
    ? ["ArrowLeft", "ArrowRight", "ArrowDown", "ArrowUp"]
    : ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"];
  const last = (of) => lines.shown[of].length - 1;
  const step = lines.isReversed[side] ? -1 : 1;
  const target = { side, index };
  if (key === back) target.index -= step;
  else if (key === forward) target.index += step;
  else if (key === "Home") target.index = 0;
  else if (key === "End") target.index = last(side);
  else if (turn.includes(key)) target.side = key === turn[0] ? "rows" : "columns";
  else return false;
  target.index = Math.max(0, Math.min(last(target.side), target.index));
  focusToken(target);
  return true;
}

/** Focus a token, which Tab then comes back to. */
function focusToken({ side, index }) {
  const options = byId(side).querySelectorAll("[role=option]");
  options.forEach((option, place) => option.setAttribute("tabindex", place === index ? 0 : -1));
  options[index]?.focus();
}
