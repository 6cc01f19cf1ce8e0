/* The two texts on the page: their sentences, and the words that belong together. A
   place is `{index, side, word}`: a sentence, "source" or "target", and one of its words
   on that side, null between words. */

import { byId, element } from "./elements.js";
import { linkedWords } from "./texts.js";

/* The text, its translated sentences in order, their elements on both sides, and the
   places that have the pointer and the focus. */
let text = "";
let sentences = [];
let sentenceNodes = { source: [], target: [] };
let markedNodes = [];
let pointedPlace = null;
let focusedPlace = null;
let onChange = () => {};

/** Return the translated sentences that have arrived. */
export function currentSentences() {
  return sentences;
}

/** Show a text without its translation; an older translation turns pale. */
export function drawText(newText) {
  text = newText;
  forgetSentences();
  byId("mirror").textContent = text;
  byId("translation").classList.add("stale");
}

/** Remove the translation. */
export function clearTranslation() {
  forgetSentences();
  byId("translation").replaceChildren();
}

function forgetSentences() {
  sentences = [];
  sentenceNodes = { source: [], target: [] };
  pointedPlace = focusedPlace = null;
  drawMarks();
}

/** Add a sentence that has arrived. */
export function addSentence(sentence) {
  const sheet = byId("translation");
  if (sentences.length === 0) {
    byId("mirror").replaceChildren(text);
    sheet.replaceChildren();
    sheet.classList.remove("stale");
    sheet.ariaBusy = "true";
  }
  const last = sentences.at(-1)?.end ?? 0;
  const sourceGap = text.slice(last, sentence.begin);
  const index = sentences.length;
  const untranslated = byId("mirror").lastChild;
  for (const side of ["source", "target"]) {
    sentenceNodes[side].push(sentenceNode(sentence, side, index));
  }
  untranslated.before(sourceGap, sentenceNodes.source[index]);
  untranslated.data = text.slice(sentence.end);
  sheet.append(sentence.gap, sentenceNodes.target[index]);
  sentences.push(sentence);
  byId("translation").classList.toggle("several", sentences.length > 1);
  byId("mirror").classList.toggle("several", sentences.length > 1);
  if (index === 0) setTabStop(sheet.querySelector(".word"));
}

/** Show the whole answer; sentences that arrived the same stay as they are. */
export function endTranslation(answer) {
  const sheet = byId("translation");
  const translation = answer.sentences.map(({ gap, target }) => gap + target).join("");
  if (sheet.textContent !== translation || sentences.length !== answer.sentences.length) {
    forgetSentences();
    for (const sentence of answer.sentences) addSentence(sentence);
  }
  if (answer.sentences.length === 0) clearTranslation();
  sheet.append(answer.tail);
  sheet.classList.remove("stale");
  sheet.ariaBusy = "false";
}

/** Wait for no more sentences. */
export function stopTranslation() {
  byId("translation").ariaBusy = "false";
}

function sentenceNode(sentence, side, index) {
  const node = element("span", { class: "sentence", "data-index": index });
  const letters = sentence[side];
  let last = 0;
  for (const [word, { begin, end }] of sentence.sides[side].entries()) {
    const attributes = { class: "word", "data-word": word };
    if (side === "target") attributes.tabindex = -1;
    node.append(letters.slice(last, begin), element("span", attributes, letters.slice(begin, end)));
    last = end;
  }
  node.append(letters.slice(last));
  return node;
}

/** Return the place of an element of a sheet, null if it is in no sentence of the text. */
function placeOf(node, side) {
  const sentence = node?.closest(".sentence");
  if (!sentence) return null;
  const index = Number(sentence.dataset.index);
  // The pale translation of an older text has sentences, too.
  if (sentenceNodes[side][index] !== sentence) return null;
  const word = node.closest(".word");
  return { index, side, word: word ? Number(word.dataset.word) : null };
}

/** Return the place to show: the one under the pointer, or else the one with the focus. */
function shownPlace() {
  return pointedPlace?.word != null ? pointedPlace : focusedPlace;
}

/** Mark the sentence that is selected on both sides. */
export function selectSentence(index) {
  for (const node of document.querySelectorAll(".sentence.current")) node.classList.remove("current");
  for (const side of ["source", "target"]) sentenceNodes[side][index]?.classList.add("current");
}

function pointAt(place) {
  if (isSame(place, pointedPlace)) return;
  pointedPlace = place;
  drawMarks();
}

function isSame(place, otherPlace) {
  return JSON.stringify(place) === JSON.stringify(otherPlace);
}

function focusOn(place) {
  focusedPlace = place;
  drawMarks();
}

/** Mark the word of the shown place, and those of the other side that belong to it. */
function drawMarks() {
  for (const node of markedNodes) node.classList.remove("marked");
  markedNodes = [];
  const place = shownPlace();
  if (place?.word != null) {
    const { index, side, word } = place;
    const other = side === "source" ? "target" : "source";
    markWord(side, index, word);
    for (const linkedWord of linkedWords(sentences[index], side, word)) {
      markWord(other, index, linkedWord);
    }
  }
  onChange(place);
}

function markWord(side, index, word) {
  const node = sentenceNodes[side][index].querySelector(`[data-word="${word}"]`);
  node.classList.add("marked");
  markedNodes.push(node);
}

function setTabStop(node) {
  if (!node) return;
  byId("translation").querySelector("[tabindex='0']")?.setAttribute("tabindex", -1);
  node.setAttribute("tabindex", 0);
}

function moveTo(node) {
  if (!node) return;
  setTabStop(node);
  node.focus();
}

/** Move the focus among the words of the translation. */
function pressKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const words = [...byId("translation").querySelectorAll(".word")];
  const at = words.indexOf(document.activeElement);
  const place = placeOf(words[at], "target");
  if (!place) return;
  const isLeftward = getComputedStyle(byId("translation")).direction === "rtl";
  const first = (sentence) => sentenceNodes.target[sentence]?.querySelector(".word");
  const goal = {
    ArrowRight: words[at + (isLeftward ? -1 : 1)],
    ArrowLeft: words[at + (isLeftward ? 1 : -1)],
    ArrowDown: first(place.index + 1),
    ArrowUp: first(place.index - 1),
    Home: words[0],
    End: words.at(-1),
  };
  if (!(event.key in goal)) return;
  event.preventDefault();
  moveTo(goal[event.key]);
}

/** Return the sentence that the caret is in while one types, null if there is none. */
export function typedSentence() {
  return document.activeElement === byId("source") ? caretPlace()?.index ?? null : null;
}

/** Return the place of the caret: the last sentence that begins before it, or null. */
function caretPlace() {
  const { selectionStart: caret } = byId("source");
  const index = sentences.findLastIndex(({ begin }) => begin <= caret);
  if (index < 0) return null;
  const { begin, sides } = sentences[index];
  const offset = caret - begin;
  const word = sides.source.findIndex((span) => span.begin <= offset && offset <= span.end);
  return { index, side: "source", word: word < 0 ? null : word };
}

/**
 * Listen to the pointer, the focus and the caret.
 *
 * @param {function} newOnChange Gets the shown place, or null, whenever it changes.
 * @param {function} onSelect Gets the index of the sentence that has the focus.
 */
export function listen(newOnChange, onSelect) {
  onChange = newOnChange;
  const source = byId("source");
  const sheet = byId("translation");
  // The mirror lies below the text, which gets the pointer.
  source.addEventListener("pointermove", ({ clientX, clientY }) => {
    const below = document.elementsFromPoint(clientX, clientY);
    pointAt(placeOf(below.find((node) => node.closest("#mirror")), "source"));
  });
  source.addEventListener("pointerleave", () => pointAt(null));
  sheet.addEventListener("pointerover", ({ target }) => pointAt(placeOf(target, "target")));
  sheet.addEventListener("pointerleave", () => pointAt(null));
  sheet.addEventListener("keydown", pressKey);
  sheet.addEventListener("focusin", ({ target }) => {
    setTabStop(target.closest(".word"));
    focusOn(placeOf(target, "target"));
    if (focusedPlace) onSelect(focusedPlace.index);
  });
  sheet.addEventListener("focusout", () => focusOn(null));
  source.addEventListener("blur", () => focusOn(null));
  document.addEventListener("selectionchange", () => {
    if (document.activeElement !== source) return;
    focusOn(caretPlace());
    if (focusedPlace) onSelect(focusedPlace.index);
  });
  window.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    pointedPlace = null;
    focusOn(null);
  });
}
