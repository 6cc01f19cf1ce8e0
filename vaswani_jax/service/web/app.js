/* Translate what is typed, and show errors where they belong. */

import * as choices from "./choices.js";
import { byId, countPhrase, decimal, element, formatNumber, setLanguage, showMessage } from "./elements.js";
import * as panes from "./panes.js";
import { currentKey, keepKey, requestJson, RequestError, streamTranslation } from "./requests.js";
import * as selection from "./sentence.js";
import { characterPlaces, countCharacters, gapBefore, readAnswer, readSentence } from "./texts.js";

/* The pause in typing after which the text is translated, longer for long texts. */
const PAUSE_MS = 400;
const LONG_PAUSE_MS = 1200;
const LONG_TEXT = 2000;
/* The longest wait for a busy server, and the pauses between polls of one that starts. */
const MAX_RETRY_SECONDS = 60;
const POLL_MS = 1000;
const MAX_POLL_MS = 10_000;
/* The alert that shows an error in each field of a request. */
const FIELD_ALERTS = {
  text: "text-alert",
  beam_size: "search-alert", length_penalty: "search-alert", n_best: "search-alert",
  model: "server-alert", source: "server-alert", target: "server-alert",
};
const ALERTS = ["server-alert", "key-alert", "text-alert", "translation-alert", "search-alert"];

let timer = null;
let controller = null;
let selectedIndex = 0;
let isReady = false;

function currentText() {
  return byId("source").value.toWellFormed();
}

/** Return the request whose answer the page shows. */
function currentRequest() {
  return { ...choices.currentChoice(), ...choices.currentSearch() };
}

function clearAlerts() {
  for (const id of ALERTS) showMessage(id, "");
  byId("source").removeAttribute("aria-invalid");
  byId("length-penalty").removeAttribute("aria-invalid");
  byId("retry").hidden = true;
}

/** Cancel the request that runs, and the one that waits for a pause. */
function cancel() {
  clearTimeout(timer);
  controller?.abort();
  controller = null;
  setBusy(false);
}

function setBusy(isBusy) {
  byId("translation").closest(".pane").classList.toggle("busy", isBusy);
}

function drawCount() {
  const count = countCharacters(byId("source").value);
  const maxCharacters = choices.currentLimits()?.characters;
  byId("count").replaceChildren(
    maxCharacters ? `${formatNumber(count)} / ${formatNumber(maxCharacters)}` : formatNumber(count),
    element("span", { class: "unseen" }, " characters"),
  );
  byId("count").classList.toggle("over", maxCharacters !== undefined && count > maxCharacters);
  byId("clear").hidden = count === 0;
}

/** Read a changed text: forget the old translation, and translate after a pause. */
function readText() {
  cancel();
  clearAlerts();
  drawCount();
  panes.drawText(byId("source").value);
  byId("copy").disabled = true;
  byId("copy").textContent = "Copy";
  byId("progress").textContent = "";
  if (!currentText().trim()) {
    panes.clearTranslation();
    drawSelection();
  } else if (byId("while-typing").checked) {
    const pause = byId("source").value.length > LONG_TEXT ? LONG_PAUSE_MS : PAUSE_MS;
    timer = setTimeout(translate, pause);
  }
}

/** Return the alert's id and the message if a text must not be sent, else null. */
function findFault(text) {
  const maxCharacters = choices.currentLimits().characters;
  const count = countCharacters(text);
  if (count > maxCharacters) {
    const size = countPhrase(count, "character");
    const limit = formatNumber(maxCharacters);
    return ["text-alert", `The text has ${size}; this server takes at most ${limit}.`];
  }
  return choices.searchFault() ? ["search-alert", choices.searchFault()] : null;
}

/** Translate the text now, and cancel an older request. */
async function translate() {
  cancel();
  const text = currentText();
  if (!isReady || !text.trim()) return;
  clearAlerts();
  const fault = findFault(text);
  if (fault) return showAlert(...fault);
  const { signal } = controller = new AbortController();
  const request = currentRequest();
  const { source, target } = choices.currentDirection();
  setLanguage(byId("translation"), target);
  setLanguage(byId("source"), source);
  panes.drawText(text);
  setBusy(true);
  byId("progress").textContent = "Translating…";
  const begin = performance.now();
  const places = characterPlaces(text);
  try {
    const answer = await withRetry(signal, () => {
      panes.drawText(text);
      let last = { source: 0, target: 0 };
      return streamTranslation({ ...request, text, alignment: true }, {
        signal,
        onSentence(entry) {
          const sourceGap = text.slice(last.source, places[entry.source_begin]);
          const gap = gapBefore(entry, { sourceGap, lastEnd: last.target });
          panes.addSentence(readSentence(entry, { text, places, target: entry.target, gap }));
          last = { source: places[entry.source_end], target: entry.target_end };
          byId("progress").textContent =
            `Translating… ${countPhrase(panes.currentSentences().length, "sentence")}`;
          selectSentence(selectedIndex);
        },
      });
    });
    const result = readAnswer(answer.results[0], text);
    if (result.sentences.length === 1) {
      const hypotheses = result.translations.map((each) => ({ ...each, text: each.text.trim() }));
      selection.keepHypotheses({ ...request, text: result.sentences[0].line }, hypotheses);
    }
    panes.endTranslation(result);
    byId("copy").disabled = result.sentences.length === 0;
    const seconds = decimal((performance.now() - begin) / 1000, 1);
    byId("progress").textContent = `${countPhrase(result.sentences.length, "sentence")} in ${seconds} s`;
    selectSentence(panes.typedSentence() ?? selectedIndex);
  } catch (error) {
    if (signal.aborted) return;
    panes.stopTranslation();
    byId("progress").textContent = "";
    showError(error);
  }
  if (controller?.signal === signal) setBusy(false);
}

/** Await an answer; if the server is busy, ask once more after the time that it names. */
async function withRetry(signal, request) {
  try {
    return await request();
  } catch (error) {
    const { retrySeconds, status } = error;
    const isBusy = [429, 503].includes(status) && retrySeconds !== null;
    if (signal.aborted || !isBusy || retrySeconds > MAX_RETRY_SECONDS) throw error;
    byId("progress").textContent = `The server is busy: trying again in ${retrySeconds} s`;
    await pause(retrySeconds * 1000, signal);
    byId("progress").textContent = "Translating…";
    return await request();
  }
}

function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const wait = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(wait);
      reject(signal.reason);
    });
  });
}

function showAlert(id, message) {
  showMessage(id, message);
  if (id === "text-alert") byId("source").ariaInvalid = "true";
  if (id === "search-alert") {
    byId("length-penalty").ariaInvalid = String(choices.searchFault() !== "");
    byId("settings").open = true;
  }
}

/** Show an error next to the part of the page that it concerns. */
function showError(error) {
  if (!(error instanceof RequestError)) console.error(error);
  const { status, field } = error;
  const message = error instanceof RequestError
    ? error.message : "The server's answer cannot be read.";
  if (status === 401 || status === 403) return askForKey(currentKey() ? message : "");
  if (status === 413) return showAlert("text-alert", message);
  if (status === 422 && field in FIELD_ALERTS) return showAlert(FIELD_ALERTS[field], message);
  showAlert("translation-alert", message);
  byId("retry").hidden = false;
  if (status === 503) watch();
}

/** Ask for an API key; `message` says what is wrong with the current one. */
function askForKey(message) {
  byId("key-form").hidden = false;
  showMessage("key-alert", message || "This server needs an API key.");
}

function selectSentence(index) {
  selectedIndex = index;
  drawSelection();
}

function drawSelection() {
  const sentences = panes.currentSentences();
  const index = Math.min(selectedIndex, Math.max(0, sentences.length - 1));
  panes.selectSentence(index);
  const isComplete = byId("translation").ariaBusy !== "true";
  const request = currentRequest();
  selection.showSentence({
    sentences, index, direction: choices.currentDirection(),
    // While sentences arrive the server has enough to do.
    request: isComplete ? request : { ...request, n_best: 1 },
  });
}

function moveSelection(step) {
  const last = panes.currentSentences().length - 1;
  if (last >= 0) selectSentence(Math.max(0, Math.min(selectedIndex + step, last)));
}

async function copyTranslation() {
  const text = byId("translation").textContent;
  try {
    await navigator.clipboard.writeText(text);
    byId("progress").textContent = "Copied";
  } catch {
    // Without HTTPS there is no clipboard: the reader copies the selection by keys.
    window.getSelection().selectAllChildren(byId("translation"));
    byId("progress").textContent = "Selected: press Ctrl C to copy it";
  }
}

function swap() {
  const translation = byId("translation");
  const isTranslated = !byId("copy").disabled;
  choices.swapDirection();
  if (isTranslated) byId("source").value = translation.textContent;
  readText();
  translate();
}

/** Load the models and languages; wait for a server that is not ready. */
async function begin() {
  try {
    const [models, languages] = await Promise.all([
      requestJson("v1/models"), requestJson("v1/languages"),
    ]);
    choices.fillChoices(models, languages);
    isReady = true;
    byId("key-form").hidden = !currentKey();
    showMessage("key-alert", "");
    showMessage("server-alert", "");
    readText();
  } catch (error) {
    if (error.status === 401 || error.status === 403) return askForKey(currentKey() && error.message);
    if (error.status !== 503) showMessage("server-alert", error.message);
    watch();
  }
}

let isWatched = false;
let beginPause = POLL_MS;

/** Show that the server starts or ends, until it is ready; then load what is missing. */
async function watch() {
  if (isWatched) return;
  isWatched = true;
  const states = {
    starting: "The server is starting. This page will be ready with it.",
    draining: "The server is shutting down and takes no more texts.",
  };
  let state = await currentState();
  const isAway = state !== "ready";
  for (let wait = POLL_MS; state !== "ready"; wait = Math.min(wait * 1.5, MAX_POLL_MS)) {
    showMessage("server-state", states[state] ?? "");
    await sleep(wait);
    state = await currentState();
  }
  showMessage("server-state", "");
  // A server that is ready, or a proxy before it, may still refuse its lists.
  if (!isReady && !isAway) {
    await sleep(beginPause);
    beginPause = Math.min(beginPause * 1.5, MAX_POLL_MS);
  }
  isWatched = false;
  if (!isReady) begin();
  else if (isAway && !byId("retry").hidden) translate();
}

function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Return the server's state, "away" if it names none. */
async function currentState() {
  try {
    return (await requestJson("health")).status;
  } catch (error) {
    return error.answer?.status ?? "away";
  }
}

panes.listen(
  (place) => selection.showReading(panes.currentSentences(), place),
  selectSentence,
);
choices.listen(readText, readText);
byId("source").addEventListener("input", ({ isComposing }) => {
  if (!isComposing) readText();
});
byId("source").addEventListener("compositionend", readText);
byId("source").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  translate();
});
byId("translate").addEventListener("click", translate);
byId("retry").addEventListener("click", translate);
byId("swap").addEventListener("click", swap);
byId("attention").addEventListener("click", selection.followLink);
byId("copy").addEventListener("click", copyTranslation);
byId("previous").addEventListener("click", () => moveSelection(-1));
byId("next").addEventListener("click", () => moveSelection(1));
byId("clear").addEventListener("click", () => {
  byId("source").value = "";
  byId("source").focus();
  readText();
});
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const key = byId("key").value.trim();
  if (!/^[!-~]*$/.test(key)) {
    showMessage("key-alert", "A key has only visible ASCII characters. Please copy it again.");
    return;
  }
  keepKey(key);
  showMessage("key-alert", "");
  if (isReady) translate();
  else begin();
});
window.addEventListener("online", () => {
  if (!byId("retry").hidden) translate();
});
byId("key").value = currentKey();
drawCount();
begin();
