"use strict";

/* What is shown. It stands in the address after #, so that a figure can be linked to. */

const VIEWS = {
  lines: "Lines",
  matrix: "Matrix",
  overview: "All heads",
  beam: "Beam search",
  training: "Checkpoints",
  roles: "What heads do",
};

const DEFAULTS = {
  view: "lines",
  sentence: 1,
  model: PAGE.models.length,
  kind: "encoder",
  layer: null, // The last but one: the paper shows layer 5 of 6.
  heads: null, // All.
  isSingle: false,
  unit: "subwords",
  marks: "shown",
  layout: null, // Upright where there is room.
  threshold: 0.05,
  count: 10,
  sort: "layer",
  rolesSort: "", // The column by which the heads are sorted; "-" reverses the order.
  path: 1, // The finished hypothesis whose path is thick.
  hidesDropped: false, // Whether dropped candidates are hidden.
  theme: "auto",
  pinned: null, // {side: "rows" or "columns", index} of a token.
};

const state = { ...DEFAULTS };

/* The token under the pointer or with the focus; it is not part of a link. */
let pointed = null;

function currentSentence() {
  return PAGE.sentences[state.sentence - 1];
}

function currentView() {
  return currentSentence().views[state.model - 1];
}

/** Return the token whose lines alone are shown, null if all are. */
function chosenToken() {
  return state.pinned ?? pointed;
}

function currentLayout() {
  return state.layout ?? (document.documentElement.clientWidth < 700 ? "columns" : "upright");
}

/** Return the tokens that are shown: those that look, and those that are looked at. */
function currentTokens() {
  const isShown = (token) => state.marks === "shown" || !token.isMark;
  const shown = (side) =>
    tokensOf(currentSentence(), currentView(), side, state.unit).filter(isShown);
  return { rows: shown(KINDS[state.kind].rows), columns: shown(KINDS[state.kind].columns) };
}

/** Return the tokens that are shown, and the weights of each chosen head. */
function currentWeights() {
  const { rows, columns } = currentTokens();
  const { kind, layer } = state;
  const isRescaled = state.marks === "rescaled";
  const matrices = new Map(
    state.heads.map((head) => [
      head, matrixOf(currentView(), { kind, layer, head, rows, columns, isRescaled }),
    ]),
  );
  return { rows, columns, matrices };
}

/** Keep every part of the state among what the page has. */
function keepInRange() {
  const within = (number, last, otherwise) =>
    Number.isInteger(number) && number >= 1 && number <= last ? number : otherwise;
  const among = (names, value, otherwise) => (names.includes(value) ? value : otherwise);
  const views = Object.keys(VIEWS).filter(hasView);
  state.view = among(views, state.view, DEFAULTS.view);
  state.sentence = within(state.sentence, PAGE.sentences.length, 1);
  state.model = within(state.model, PAGE.models.length, PAGE.models.length);
  state.kind = among(Object.keys(KINDS), state.kind, DEFAULTS.kind);
  const { layers, heads } = sizesOf(currentView(), state.kind);
  state.layer = within(state.layer, layers, Math.max(1, layers - 1));
  const all = Array.from({ length: heads }, (_, index) => index + 1);
  state.heads = all.filter((head) => state.heads?.includes(head) ?? true);
  state.path = within(state.path, currentView().search?.finished.length ?? 1, 1);
  state.unit = among(["subwords", "words"], state.unit, DEFAULTS.unit);
  state.marks = among(["shown", "hidden", "rescaled"], state.marks, DEFAULTS.marks);
  state.layout = among(["upright", "columns"], state.layout, null);
  state.count = among([10, 20, 50, 100], state.count, DEFAULTS.count);
  state.sort = among(["layer", "entropy", "importance"], state.sort, DEFAULTS.sort);
  state.theme = among(["auto", "light", "dark"], state.theme, DEFAULTS.theme);
  const isWeight = state.threshold >= 0 && state.threshold <= 0.5;
  state.threshold = isWeight ? state.threshold : DEFAULTS.threshold;
  if (!currentTokens()[state.pinned?.side]?.[state.pinned.index]) state.pinned = null;
}

/** Return whether the page has what a view needs. */
function hasView(view) {
  if (view === "training") return PAGE.models.length > 1;
  if (view === "roles") return PAGE.heads !== null;
  return true;
}

/** Return the fragment of the address: what differs from the defaults. */
function fragmentOf() {
  const { layers, heads } = sizesOf(currentView(), state.kind);
  const parts = [
    ["v", state.view, DEFAULTS.view],
    ["s", state.sentence, 1],
    ["c", PAGE.models[state.model - 1].name, PAGE.models.at(-1).name],
    ["a", state.kind, DEFAULTS.kind],
    ["l", state.layer, Math.max(1, layers - 1)],
    ["h", state.heads.length === heads ? "all" : state.heads.join(",") || "none", "all"],
    ["u", state.unit, DEFAULTS.unit],
    ["m", state.marks, DEFAULTS.marks],
    ["o", state.layout, null],
    ["min", state.threshold, DEFAULTS.threshold],
    ["n", state.count, DEFAULTS.count],
    ["sort", state.sort, DEFAULTS.sort],
    ["by", state.rolesSort, ""],
    ["f", state.path, 1],
    ["d", state.hidesDropped ? "hidden" : "shown", "shown"],
    ["theme", state.theme, DEFAULTS.theme],
    ["q", state.pinned?.side === "rows" ? state.pinned.index + 1 : null, null],
    ["k", state.pinned?.side === "columns" ? state.pinned.index + 1 : null, null],
  ];
  const fragment = new URLSearchParams(
    parts.filter(([, value, usual]) => value !== usual).map(([name, value]) => [name, value]),
  );
  return fragment.toString().replaceAll("%2C", ",");
}

/**
 * Read the state from the address. Tokens count from 1, `q` those that look and `k`
 * those that are looked at; `t=its` pins the first token "its" that looks.
 */
function readFragment() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (parts.has(name) ? Number(parts.get(name)) : undefined);
  const model = PAGE.models.findIndex(({ name }) => name === parts.get("c"));
  const heads = parts.get("h") ?? "all";
  const read = {
    view: parts.get("v"),
    sentence: number("s"),
    model: model < 0 ? undefined : model + 1,
    kind: parts.get("a"),
    layer: number("l"),
    heads: heads === "all" ? null : heads.split(",").map(Number),
    unit: parts.get("u"),
    marks: parts.get("m"),
    layout: parts.get("o"),
    threshold: number("min"),
    count: number("n"),
    sort: parts.get("sort"),
    rolesSort: parts.get("by"),
    path: number("f"),
    hidesDropped: parts.get("d") === "hidden",
    theme: parts.get("theme"),
    pinned: null,
  };
  for (const side of ["q", "k"]) {
    if (parts.has(side)) {
      read.pinned = { side: side === "q" ? "rows" : "columns", index: number(side) - 1 };
    }
  }
  for (const [name, usual] of Object.entries(DEFAULTS)) state[name] = read[name] ?? usual;
  keepInRange();
  if (parts.has("t")) {
    const index = currentTokens().rows.findIndex((token) => plainText(token.text) === parts.get("t"));
    state.pinned = index < 0 ? null : { side: "rows", index };
  }
}
