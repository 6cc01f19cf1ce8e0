"use strict";

/* The beam search as a tree: a column for each position, a box for each candidate. */

const BOX = { width: 116, height: 38, right: 44, below: 6, left: 66, top: 30 };

/* The tree as it stands: its boxes by position and candidate. */
let tree = null;

function drawBeam() {
  const { search } = currentView();
  const drawing = byId("drawing");
  byId("figure").hidden = !search;
  if (!search) {
    byId("other").append(element("p", {}, "There is no record of a search for this translation."));
    return;
  }
  const path = search.finished[state.path - 1]?.candidates ?? [];
  const boxes = search.positions.map((candidates, position) => {
    const shown = candidates
      .map((candidate, place) => ({ ...candidate, place, position, isOnPath: path[position] === place }))
      .filter(({ fate, isOnPath }) => !state.hidesDropped || fate !== "dropped" || isOnPath);
    return shown.map((box, row) => ({
      ...box,
      x: BOX.left + position * (BOX.width + BOX.right),
      y: BOX.top + row * (BOX.height + BOX.below),
    }));
  });
  const tallest = Math.max(1, ...boxes.map((column) => column.length));
  const width = BOX.left + boxes.length * (BOX.width + BOX.right);
  const height = BOX.top + tallest * (BOX.height + BOX.below) + 8;
  tree = { search, boxes };

  const all = boxes.flat();
  // What is on the path is drawn above what is not.
  const edges = [...all].sort((one, other) => one.isOnPath - other.isOnPath).map(drawEdge);
  const numbers = boxes.map((_, position) =>
    svg(
      "text",
      { class: "number", x: BOX.left + position * (BOX.width + BOX.right) + BOX.width / 2, y: 16, "text-anchor": "middle", "font-size": 12 },
      position ? position + 1 : `position ${position + 1}`,
    ),
  );
  const picture = svg(
    "svg",
    { id: "tree", role: "group", "aria-label": "Tree of the search", class: "drawing", width, height, viewBox: `0 0 ${width} ${height}` },
    svg(
      "g", { role: "img", "aria-label": "Lines from each hypothesis to the candidates that extend it" },
      ...edges, ...numbers,
      svg("text", { x: 10, y: BOX.top + BOX.height / 2, dy: "0.35em", "font-size": SIZE }, currentView().attention.target_in[0]),
    ),
    svg("g", { role: "listbox", "aria-label": "Candidates" }, ...all.map(drawBox)),
  );
  listenToBoxes(picture);
  drawing.replaceChildren(picture);
  const shownPath = state.path === 1 ? "the winner" : `finished hypothesis ${state.path}`;
  byId("caption").replaceChildren(
    element("strong", {}, `Beam search, beam size ${search.beam_size}.`),
    ` At each position the ${2 * search.beam_size} best candidates, best first. ` +
    `A solid box stays live, a double one is finished, a dashed one is dropped. The thick line is ${shownPath}.`,
  );
  pointAtBox(null);
  drawFinished(search);
}

/** Return the box of the live hypothesis that a candidate extends; none at the start. */
function parentOf({ position, parent }) {
  return tree.boxes[position - 1]?.find(({ live }) => live === parent);
}

function drawEdge(box) {
  const parent = parentOf(box);
  const x1 = parent ? parent.x + BOX.width : BOX.left - 18;
  const y1 = (parent ? parent.y : BOX.top) + BOX.height / 2;
  const [x2, y2] = [box.x, box.y + BOX.height / 2];
  const bend = (x2 - x1) / 2;
  return svg("path", {
    class: ["edge", box.fate, box.isOnPath ? "path" : ""].join(" ").trim(),
    d: `M ${x1} ${y1} C ${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`,
  });
}

function drawBox(box, index) {
  const { x, y, token, log_prob: logProb, score, fate, isOnPath, position, place } = box;
  const numbers = fate === "finished" ? `score ${decimal(score, 2)}` : `log P ${decimal(logProb, 2)}`;
  const inner = fate === "finished"
    ? svg("rect", { class: "inner", x: x + 3, y: y + 3, width: BOX.width - 6, height: BOX.height - 6, rx: 3 })
    : null;
  return svg(
    "g",
    {
      role: "option", class: `box ${fate} ${isOnPath ? "path" : ""}`.trim(), tabindex: index === 0 ? 0 : -1,
      "aria-selected": isOnPath, "aria-label": boxText(box), "data-position": position, "data-place": place,
    },
    svg("title", {}, `${token}: ${boxText(box)}`),
    svg("rect", { class: "outer", x, y, width: BOX.width, height: BOX.height, rx: 5 }),
    inner,
    svg(
      "text", { x: x + BOX.width / 2, y: y + 15, "text-anchor": "middle", "font-size": SIZE, lang: languageOf("target_out") },
      fitText(displayText(token), BOX.width - 16, SIZE),
    ),
    svg("text", { class: "number", x: x + BOX.width / 2, y: y + 30, "text-anchor": "middle", "font-size": 11 }, numbers),
  );
}

/** Return a candidate in words. */
function boxText(box) {
  const parent = parentOf(box);
  const fate = { live: "It stays live", finished: "It is finished", dropped: "It is dropped" }[box.fate];
  const step = parent ? ` (${decimal(box.log_prob - parent.log_prob, 2)} for this token)` : "";
  return (
    `position ${box.position + 1}, candidate ${box.place + 1}: “${isolate(hypothesisOf(box))}”, ` +
    `log P ${decimal(box.log_prob, 2)}${step}, score ${decimal(box.score, 2)}. ${fate}.`
  );
}

/** Return the text of a candidate with all that it extends. */
function hypothesisOf(box) {
  const tokens = [];
  for (let one = box; one; one = parentOf(one)) tokens.unshift(one.token);
  return joinTokens(tokens);
}

/** Return tokens as a text; an end mark stands apart. */
function joinTokens(tokens) {
  const text = tokens.map((token) => (/^<.*>$/.test(token) ? `▁${token}` : token)).join("");
  return text.replaceAll("▁", " ").trim();
}

function pointAtBox(box) {
  const text = box ? boxText(box) : "";
  byId("summary").textContent = box
    ? `${text[0].toUpperCase()}${text.slice(1)}`
    : "Point at a candidate, or reach it by Tab and the arrow keys, to read what it is.";
}

function listenToBoxes(picture) {
  const boxOf = (event) => {
    const option = event.target.closest("[role=option]");
    if (!option) return null;
    const { position, place } = option.dataset;
    return tree.boxes[Number(position)].find((box) => box.place === Number(place));
  };
  picture.addEventListener("pointerover", (event) => pointAtBox(boxOf(event)));
  picture.addEventListener("pointerleave", ({ pointerType }) => {
    if (pointerType !== "touch") pointAtBox(null);
  });
  picture.addEventListener("focusin", (event) => pointAtBox(boxOf(event)));
  picture.addEventListener("keydown", (event) => {
    const box = boxOf(event);
    if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
    const column = tree.boxes[box.position];
    const row = column.indexOf(box);
    const next = {
      ArrowUp: column[row - 1],
      ArrowDown: column[row + 1],
      ArrowLeft: parentOf(box),
      ArrowRight: box.live === null ? undefined
        : tree.boxes[box.position + 1]?.find(({ parent }) => parent === box.live),
    };
    if (!(event.key in next)) return;
    event.preventDefault();
    const target = next[event.key];
    if (!target) return;
    for (const option of picture.querySelectorAll("[role=option]")) {
      const { position, place } = option.dataset;
      const isTarget = Number(position) === target.position && Number(place) === target.place;
      option.setAttribute("tabindex", isTarget ? 0 : -1);
      if (isTarget) option.focus();
    }
  });
}

/** Say why the winner won and why the search ended, and list what was finished. */
function drawFinished(search) {
  const names = ["", "hypothesis", "log P", "tokens", "penalty", "score", ""];
  const rows = search.finished.map(({ tokens, text, log_prob: logProb, penalty, score }, index) => {
    const isShown = index + 1 === state.path;
    const button = element(
      "button",
      { type: "button", "data-key": `path-${index}`, "aria-pressed": isShown, "aria-label": `Show the path of hypothesis ${index + 1}` },
      isShown ? "shown" : "show",
    );
    button.addEventListener("click", () => change({ path: index + 1 }));
    return element(
      "tr", { class: isShown ? "current" : null },
      element("td", {}, index + 1),
      element("td", { class: "translation", lang: languageOf("target_out"), dir: "auto" }, text || "(empty)"),
      element("td", {}, decimal(logProb, 3)),
      element("td", {}, tokens.length),
      element("td", {}, decimal(penalty, 3)),
      element("td", {}, decimal(score, 3)),
      element("td", {}, button),
    );
  });
  byId("other").append(
    element("h2", {}, "Why this translation"),
    ...winnerTexts(search).map((text) => element("p", {}, text)),
    element("h2", {}, hasEnded(search) ? "Finished hypotheses" : "Live hypotheses, as none has ended"),
    element("p", { class: "hint" }, penaltyText(search)),
    element(
      "div", { class: "scroll", "data-label": "Hypotheses" },
      element(
        "table", { id: "finished" },
        element("thead", {}, element("tr", {}, ...names.map((name) => (name ? element("th", { scope: "col" }, name) : element("td", {}))))),
        element("tbody", {}, ...rows),
      ),
    ),
  );
}

/** Return whether the hypotheses that were kept have end marks. */
function hasEnded({ positions, finished: [winner] }) {
  const last = winner?.candidates.length - 1;
  return !winner || positions[last][winner.candidates[last]].fate === "finished";
}

/** Return how a score is made of log P. */
function penaltyText({ alpha, penalty_form: form }) {
  if (alpha === 0) return "The score is log P: there is no length penalty (alpha is 0).";
  const penalty = form === "power" ? `|Y|^${alpha}` : `((5 + |Y|) / 6)^${alpha}`;
  return `The score is log P divided by the length penalty ${penalty}, where |Y| is the number of tokens.`;
}

/** Return sentences that say why the best hypothesis is the best. */
function winnerTexts(search) {
  const [winner, second] = search.finished;
  if (!winner) return [`No hypothesis was kept. The search stopped: ${search.stopped}.`];
  const quotient = (one) =>
    `log P ${decimal(one.log_prob, 2)} divided by the penalty ${decimal(one.penalty, 2)} is ${decimal(one.score, 2)}`;
  const quoted = ({ text }) => `“${isolate(text) || "(empty)"}”`;
  const texts = [`${quoted(winner)} has the highest score: ${quotient(winner)}.`];
  if (second) {
    texts.push(`The second best is ${quoted(second)}: ${quotient(second)}.`);
    if (second.log_prob > winner.log_prob) {
      const isMostProbable = search.finished.every((hypothesis) => hypothesis.log_prob <= second.log_prob);
      const consequence = isMostProbable ? ": without the length penalty it would have won" : "";
      texts.push(`The second is more probable, but shorter${consequence}.`);
    }
  }
  const reason = search.stopped.replace(/-(?=\d)/g, "−");
  texts.push(greedyText(search), `The search stopped: ${reason}.`);
  return texts;
}

/** Return whether the most probable token at each position leads to the winner too. */
function greedyText({ positions, finished: [winner] }) {
  const place = winner.candidates.findIndex((candidate, position) => {
    const { parent } = positions[position][candidate];
    return positions[position].findIndex((one) => one.parent === parent) < candidate;
  });
  if (place < 0) return "Each of its tokens was the most probable one: greedy search finds it too.";
  const lost = positions[place][winner.candidates[place]];
  const taken = positions[place].find(({ parent }) => parent === lost.parent);
  return (
    `Greedy search would have left this path at position ${place + 1}: there “${isolate(plainText(taken.token))}” ` +
    `is more probable than “${isolate(plainText(lost.token))}”.` +
    (taken.fate === "dropped" ? "" : " The beam kept both.")
  );
}
