"use strict";

/* The page: its controls, its keys, and which view is drawn. */

/** Change the state, and draw what follows. */
function change(changes) {
  Object.assign(state, changes);
  keepInRange();
  writeFragment();
  draw();
}

let fragmentTimer = null;

/** Write the state into the address, a little later if the browser does not let it. */
function writeFragment() {
  clearTimeout(fragmentTimer);
  try {
    history.replaceState(null, "", `#${fragmentOf()}`);
  } catch (error) {
    // Safari and Firefox refuse many changes of the address within seconds.
    if (error.name !== "SecurityError") throw error;
    fragmentTimer = setTimeout(writeFragment, 1000);
  }
}

/** Draw everything; the focus stays where it is. */
function draw() {
  const key = document.activeElement?.dataset?.key;
  pointed = null;
  document.documentElement.dataset.theme = state.theme;
  drawControls();
  drawTexts();
  drawNotes();
  const isFigure = ["lines", "matrix", "beam"].includes(state.view);
  byId("figure").hidden = !isFigure;
  byId("largest-section").hidden = !["lines", "matrix"].includes(state.view);
  byId("other").replaceChildren();
  ({
    lines: drawLines, matrix: drawMatrix, overview: drawOverview,
    beam: drawBeam, training: drawTraining, roles: drawRoles,
  })[state.view]();
  const hasDrawing = byId("drawing").querySelector("svg") !== null;
  byId("save-svg").disabled = byId("save-png").disabled = !hasDrawing;
  markScrollers();
  const focused = key && document.querySelector(`[data-key="${key}"]`);
  if (focused && document.activeElement !== focused) focused.focus();
}

/** Let keys scroll what is wider than the page. */
function markScrollers() {
  for (const box of document.querySelectorAll(".scroll")) {
    const isWide = box.scrollWidth > box.clientWidth;
    const attributes = { tabindex: 0, role: "group", "aria-label": `${box.dataset.label}, scrolls sideways` };
    for (const [name, value] of Object.entries(attributes)) {
      if (isWide) box.setAttribute(name, value);
      else box.removeAttribute(name);
    }
  }
}

function drawControls() {
  const { layers, heads } = sizesOf(currentView(), state.kind);
  byId("text-controls").hidden = state.view === "roles";
  byId("attention-controls").hidden = ["overview", "beam"].includes(state.view);
  byId("layers").hidden = byId("heads-field").hidden = state.view === "roles";
  byId("dropped-field").hidden = state.view !== "beam" || !currentView().search;
  byId("token-controls").hidden = !["lines", "matrix"].includes(state.view);
  byId("layouts").hidden = state.view !== "lines";
  byId("threshold-field").hidden = state.view !== "lines";
  byId("several-heads").hidden = state.view === "matrix";
  setChoice(byId("views"), state.view);
  setChoice(byId("kinds"), state.kind);
  setChoice(byId("units"), state.unit);
  setChoice(byId("layouts"), currentLayout());
  const numbers = Array.from({ length: layers }, (_, index) => [index + 1, index + 1]);
  if (byId("layers").querySelectorAll("input").length !== layers) {
    fillChoice(byId("layers"), numbers, (layer) => change({ layer }));
  }
  setChoice(byId("layers"), state.layer);
  drawChips(heads);
  byId("sentence").value = state.sentence;
  byId("model").value = state.model;
  const label = modelLabel(state.model - 1);
  byId("model-name").textContent = label;
  byId("model").setAttribute("aria-valuetext", label);
  byId("marks").value = state.marks;
  byId("threshold").value = state.threshold;
  byId("threshold-value").textContent = state.threshold.toFixed(2);
  byId("single").checked = state.isSingle;
  byId("largest-count").value = state.count;
  byId("hide-dropped").checked = state.hidesDropped;
  byId("theme").value = state.theme;
}

/** Draw a chip for each head: its number in its colour, pressed if it is shown. */
function drawChips(heads) {
  const chips = byId("heads");
  if (chips.childElementCount !== heads) {
    chips.replaceChildren(
      ...Array.from({ length: heads }, (_, index) => {
        const head = index + 1;
        const chip = element(
          "button",
          { type: "button", class: `chip chip-${(index % 8) + 1}`, "data-key": `chip-${head}` },
          head,
        );
        chip.classList.toggle("dashed", head > 8);
        chip.addEventListener("click", () => toggleHead(head));
        chip.addEventListener("dblclick", () => change({ heads: [head] }));
        return chip;
      }),
    );
  }
  [...chips.children].forEach((chip, index) => {
    const head = index + 1;
    const roles = rolesOf(state.kind, state.layer, head);
    const shown = state.view === "matrix" ? state.heads.slice(0, 1) : state.heads;
    chip.setAttribute("aria-pressed", shown.includes(head));
    chip.setAttribute("aria-label", `Head ${head}`);
    chip.title = `Head ${head}${roles ? `: ${roles}` : ""}. Double click: only this one.`;
  });
}

function toggleHead(head) {
  if (head > sizesOf(currentView(), state.kind).heads) return;
  if (state.isSingle || state.view === "matrix") change({ heads: [head] });
  else if (state.heads.includes(head)) change({ heads: state.heads.filter((one) => one !== head) });
  else change({ heads: [...state.heads, head] });
}

function drawTexts() {
  const sentence = currentSentence();
  const { text } = currentView();
  for (const [id, side, words] of [["source-text", "source", sentence.text], ["target-text", "target", text]]) {
    byId(id).textContent = words || "(empty)";
    const language = languageOf(side);
    if (language) byId(id).lang = language;
  }
  byId("texts").hidden = state.view === "roles" || state.view === "training";
}

/** Say what the numbers are, and warn if they are no attention. */
function drawNotes() {
  const errors = Object.keys(KINDS).map((kind) => ({ kind, ...rowError(currentView(), kind) }));
  const wrong = errors.find(({ largest, allowed }) => largest > allowed);
  byId("alarm").hidden = !wrong;
  byId("alarm").textContent = wrong
    ? `A row of the ${KINDS[wrong.kind].short} weights does not sum to 1: it is off by ${wrong.largest.toFixed(2)}. These are no attention weights.`
    : "";
  const largest = Math.max(...errors.map((error) => error.largest));
  byId("notes").textContent =
    "The weights come from a full pass of the model over the final translation, " +
    `each rounded to 1/${PAGE.levels}; rows of this sentence sum to 1 within ${largest.toFixed(3)}. ` +
    "Attention is not explanation: other weights can give the same output " +
    "(Jain and Wallace 2019; but see Wiegreffe and Pinter 2019).";
}

/** Fill what depends on the page alone, and listen to the controls. */
function begin() {
  byId("title").textContent = PAGE.title;
  for (const [label, fact] of [...Object.entries(PAGE.facts), ["made by", PAGE.command]]) {
    byId("facts").append(
      element("div", {}, element("dt", {}, label), element("dd", {}, fact)),
    );
  }
  PAGE.sentences.forEach(({ line, text }, index) => {
    const option = element("option", { value: index + 1, dir: "auto" });
    option.textContent = `${line}. ${text.length > 70 ? `${text.slice(0, 70)}…` : text}`;
    byId("sentence").append(option);
  });
  byId("model").max = PAGE.models.length;
  byId("model-field").hidden = PAGE.models.length < 2;
  const views = Object.entries(VIEWS).filter(([view]) => hasView(view));
  fillChoice(byId("views"), views, (view) => change({ view }));
  fillChoice(
    byId("kinds"),
    Object.entries(KINDS).map(([kind, { short }]) => [kind, short]),
    (kind) => change({ kind, pinned: null }),
  );
  fillChoice(
    byId("units"), [["subwords", "subwords"], ["words", "words"]],
    (unit) => change({ unit, pinned: null }),
  );
  fillChoice(
    byId("layouts"), [["upright", "upright"], ["columns", "side by side"]],
    (layout) => change({ layout }),
  );
  const on = (id, type, action) => byId(id).addEventListener(type, action);
  on("sentence", "change", (event) => change({ sentence: Number(event.target.value), pinned: null }));
  on("model", "input", (event) => change({ model: Number(event.target.value) }));
  on("marks", "change", (event) => change({ marks: event.target.value, pinned: null }));
  on("threshold", "input", (event) => change({ threshold: Number(event.target.value) }));
  on("theme", "change", (event) => change({ theme: event.target.value }));
  on("largest-count", "change", (event) => change({ count: Number(event.target.value) }));
  on("hide-dropped", "change", (event) => change({ hidesDropped: event.target.checked }));
  on("single", "change", (event) => {
    const isSingle = event.target.checked;
    change(isSingle ? { isSingle, heads: state.heads.slice(0, 1) } : { isSingle });
  });
  on("all-heads", "click", () => change({ heads: null, isSingle: false }));
  on("no-heads", "click", () => change({ heads: [] }));
  on("save-svg", "click", saveSvg);
  on("save-png", "click", savePng);
  window.addEventListener("hashchange", () => {
    readFragment();
    draw();
  });
  window.addEventListener("keydown", pressKey);
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    // A phone changes the height alone when its address bar hides.
    if (window.innerWidth !== width) draw();
    width = window.innerWidth;
  });
  readFragment();
  draw();
}

/** Keys that work everywhere but where one types or picks from a list. */
function pressKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("select")) return;
  if (event.key === "Escape") change({ pinned: null });
  else if (event.key === "[") change({ layer: Math.max(1, state.layer - 1) });
  else if (event.key === "]") {
    change({ layer: Math.min(sizesOf(currentView(), state.kind).layers, state.layer + 1) });
  } else if (/^[0-9]$/.test(event.key)) toggleHead(Number(event.key) || 10);
}

if (PAGE.version === VERSION) {
  begin();
} else {
  byId("alarm").hidden = false;
  byId("alarm").textContent = `This page cannot read data of version ${PAGE.version}; it reads ${VERSION}.`;
}
