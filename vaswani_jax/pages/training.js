"use strict";

/* How the translation and the heads form: a row for each checkpoint. */

function drawTraining() {
  const { layers } = sizesOf(currentView(), state.kind);
  const heads = state.heads;
  const sentence = currentSentence();
  const rows = sentence.views.map((view, index) => {
    const isCurrent = index + 1 === state.model;
    const button = element(
      "button",
      { type: "button", "data-key": `model-${index}`, "aria-current": isCurrent ? "true" : null },
      modelLabel(index),
    );
    button.addEventListener("click", () => change({ view: "lines", model: index + 1 }));
    const total = view.log_probs.reduce((sum, log) => sum + log, 0);
    const pictures = heads.map((head) => {
      const picture = thumbnail(view, state.kind, state.layer, head);
      const entropy = entropyOf(view, state.kind, state.layer, head).toFixed(2);
      const title = `head ${head}, entropy ${entropy}`;
      picture.setAttribute("role", "img");
      picture.setAttribute("aria-label", title);
      picture.title = title;
      return element("td", {}, picture, element("span", { class: "hint" }, entropy));
    });
    return element(
      "tr", { class: isCurrent ? "current" : null },
      element("th", { scope: "row" }, button),
      element(
        "td", { class: "translation", lang: languageOf("target_out"), dir: "auto" },
        ...markNewWords(view.text, sentence.views[index - 1]?.text),
      ),
      element("td", {}, decimal(total / view.log_probs.length, 2)),
      ...pictures,
    );
  });
  const names = ["checkpoint", "translation", "log P a token", ...heads.map((head) => `head ${head}`)];
  byId("other").append(
    element("p", {}, element("strong", {}, `${KINDS[state.kind].name}, layer ${state.layer} of ${layers}.`),
      " Words that the row above does not have are underlined. Below each matrix stands its entropy: 0 is sharp, 1 is broad."),
    element(
      "div", { class: "scroll", "data-label": "Checkpoints" },
      element(
        "table", { class: "training" },
        element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...rows),
      ),
    ),
  );
}

/** Return the name of a checkpoint, by its updates if they are known. */
function modelLabel(index) {
  const { name, step } = PAGE.models[index];
  return step === null ? name : `${step.toLocaleString("en")} updates`;
}

/** Return the parts of a text; words that an earlier text lacks are underlined. */
function markNewWords(text, earlier) {
  const segments = (of) => [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(of)];
  if (earlier === undefined) return [text];
  const old = new Set(segments(earlier).map(({ segment }) => segment));
  return segments(text).map(({ segment, isWordLike }) =>
    isWordLike && !old.has(segment) ? element("u", {}, segment) : segment,
  );
}
