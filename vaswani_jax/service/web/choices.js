/* What one chooses: the languages, the model, and how it searches. */

import { byId, decimal, fillSelect, showMessage } from "./elements.js";

let models = [];
let limits = null;
let names = new Map();

/** Fill the choices with what the server answers about its models and languages. */
export function fillChoices(modelsAnswer, languagesAnswer) {
  ({ models, limits } = modelsAnswer);
  names = new Map(languagesAnswer.languages.map(({ code, name }) => [code, name]));
  const sources = models.flatMap(({ directions }) => directions.map(({ source }) => source));
  const chosen = byId("source-language").value;
  fillSelect(byId("source-language"), languageChoices(sources), chosen || models[0]?.directions[0].source);
  byId("source-language").disabled = byId("target-language").disabled = false;
  fillTargets();
  // Until one chooses, what the first model translates first.
  if (!chosen) byId("target-language").value = models[0]?.directions[0].target;
  fillModels();
}

/** Return the limits of requests, null before they are known. */
export function currentLimits() {
  return limits;
}

/** Return `[code, name]` of each language, once, in the order of their names. */
function languageChoices(codes) {
  return [...new Set(codes)]
    .map((code) => [code, nameOf(code)])
    .sort(([, name], [, otherName]) => name.localeCompare(otherName));
}

/** Return the English name of a language; its code if it has none. */
function nameOf(code) {
  if (names.get(code)) return names.get(code);
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code.replaceAll("_", "-"));
  } catch {
    return code || "any language";
  }
}

function modelsFor(source, target) {
  return models.filter(({ directions }) =>
    directions.some((direction) => direction.source === source && direction.target === target));
}

function fillTargets() {
  const source = byId("source-language").value;
  const targets = models.flatMap(({ directions }) =>
    directions.filter((direction) => direction.source === source).map(({ target }) => target));
  fillSelect(byId("target-language"), languageChoices(targets));
  fillModels();
}

function fillModels() {
  const { source, target } = currentDirection();
  const candidates = modelsFor(source, target);
  fillSelect(byId("model"), candidates.map(({ name }) => [name, name]));
  byId("model-field").hidden = models.length < 2;
  byId("swap").disabled = modelsFor(target, source).length === 0;
  fillSearch();
}

function fillSearch() {
  const model = currentModel();
  if (!model) return;
  fillSelect(byId("beam-size"), model.beam_sizes.map((size) => [size, size]));
  const [least, most] = limits.length_penalties;
  Object.assign(byId("length-penalty"), { min: least, max: most, placeholder: model.length_penalty });
  showMessage(
    "length-penalty-hint",
    `A length penalty from ${least} to ${most}: the larger, the longer the translations. `
    + `The model's own is ${model.length_penalty}.`,
  );
  fillNumbers();
}

function fillNumbers() {
  const most = Math.max(1, Math.min(limits.n_best, Number(byId("beam-size").value)));
  const numbers = Array.from({ length: most }, (_, index) => [index + 1, index + 1]);
  const select = byId("n-best");
  fillSelect(select, numbers, select.value || most);
  if (!select.value) select.value = most;
}

function currentModel() {
  return models.find(({ name }) => name === byId("model").value);
}

/** Return the codes of both languages. */
export function currentDirection() {
  return { source: byId("source-language").value, target: byId("target-language").value };
}

/** Turn the direction round. */
export function swapDirection() {
  const { source, target } = currentDirection();
  byId("source-language").value = target;
  fillTargets();
  byId("target-language").value = source;
  fillModels();
}

/** Return the part of a request that names the model and the languages. */
export function currentChoice() {
  const choice = { model: byId("model").value, ...currentDirection() };
  return Object.fromEntries(Object.entries(choice).filter(([, value]) => value));
}

/** Return the part of a request that says how to search. */
export function currentSearch() {
  const search = {
    beam_size: Number(byId("beam-size").value),
    n_best: Number(byId("n-best").value),
  };
  const penalty = byId("length-penalty").value;
  if (penalty !== "") search.length_penalty = Number(penalty);
  return search;
}

/** Return what is wrong with the length penalty, "" if nothing is. */
export function searchFault() {
  const { value, validity } = byId("length-penalty");
  const [least, most] = limits?.length_penalties ?? [0, 0];
  if (!validity.badInput && (value === "" || (Number(value) >= least && Number(value) <= most))) return "";
  const typed = validity.badInput ? "what is typed" : decimal(Number(value), 2);
  return `The length penalty must be a number from ${least} to ${most}; it is ${typed}.`;
}

/**
 * Listen to the choices.
 *
 * @param {function} onDirection Called when another model answers.
 * @param {function} onSearch Called when it searches in another way.
 */
export function listen(onDirection, onSearch) {
  const on = (id, update, report) => byId(id).addEventListener("change", () => {
    update();
    report();
  });
  on("source-language", fillTargets, onDirection);
  on("target-language", fillModels, onDirection);
  on("model", fillSearch, onDirection);
  on("beam-size", fillNumbers, onSearch);
  on("length-penalty", () => {}, onSearch);
  on("n-best", () => {}, onSearch);
}
