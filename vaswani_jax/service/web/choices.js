/* The reader's choices: languages, model and search. */

import { byId, decimal, fillSelect, showMessage } from "./elements.js";

let models = [];
let limits = null;
let names = new Map();

/** Fill the choices with what the server answers about its models and languages. */
export function fillChoices(modelsAnswer, languagesAnswer) {
  ({ models, limits } = modelsAnswer);
  names = new Map(languagesAnswer.languages.map(({ code, name }) => [code, name]));
  const sources = models.flatMap(({ directions }) => directions.map(({ source }) => source));
  const source = byId("source-language").value;
  fillSelect(byId("source-language"), languageChoices(sources), source || models[0]?.directions[0].source);
  byId("source-language").disabled = byId("target-language").disabled = false;
  fillTargets();
  // Until the reader chooses, the first direction of the first model.
  if (!source) byId("target-language").value = models[0]?.directions[0].target;
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
  const [min, max] = limits.length_penalties;
  Object.assign(byId("length-penalty"), { min, max, placeholder: model.length_penalty });
  showMessage(
    "length-penalty-hint",
    `A length penalty from ${min} to ${max}: the larger, the longer the translations. `
    + `The model's own is ${model.length_penalty}.`,
  );
  fillNumbers();
}

function fillNumbers() {
  const maxNumber = Math.max(1, Math.min(limits.n_best, Number(byId("beam-size").value)));
  const numbers = Array.from({ length: maxNumber }, (_, index) => [index + 1, index + 1]);
  const select = byId("n-best");
  fillSelect(select, numbers, Math.min(Number(select.value) || maxNumber, maxNumber));
}

function currentModel() {
  return models.find(({ name }) => name === byId("model").value);
}

/** Return the codes of both languages. */
export function currentDirection() {
  return { source: byId("source-language").value, target: byId("target-language").value };
}

/** Swap the two languages. */
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

/** Return the fault of the length penalty in words, "" if there is none. */
export function searchFault() {
  const { value, validity } = byId("length-penalty");
  const [min, max] = limits?.length_penalties ?? [0, 0];
  if (!validity.badInput && (value === "" || (Number(value) >= min && Number(value) <= max))) return "";
  const typed = validity.badInput ? "what is typed" : decimal(Number(value), 2);
  return `The length penalty must be a number from ${min} to ${max}; it is ${typed}.`;
}

/**
 * Listen to the choices.
 *
 * @param {function} onDirection Called when the languages or the model change.
 * @param {function} onSearch Called when the settings of the search change.
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
