/* The selected sentence: its translations with scores, and its word pairs. */

import { byId, decimal, element, setLanguage, showMessage } from "./elements.js";
import { addressOf, currentKey, requestFile, requestJson } from "./requests.js";
import { linkedWords, wordPairs, wordText } from "./texts.js";

const PAUSE_MS = 250;
const MAX_REQUESTS = 200;

/* Translations of sentences by their request, so that none is asked for twice. */
const hypothesesByRequest = new Map();
let pendingRequest = "";
let timer = null;
let controller = null;

/** Show a sentence of the text; `request` has the choices for its translations. */
export function showSentence({ sentences, index, request, direction }) {
  const sentence = sentences[index];
  byId("sentence").hidden = !sentence;
  if (!sentence) return forgetSentence();
  const isOnly = sentences.length === 1;
  byId("sentence-title").textContent = isOnly
    ? "Sentence" : `Sentence ${index + 1} of ${sentences.length}`;
  byId("previous").hidden = byId("next").hidden = isOnly;
  byId("previous").disabled = index === 0;
  byId("next").disabled = index === sentences.length - 1;
  byId("sentence-text").textContent = sentence.source;
  setLanguage(byId("sentence-text"), direction.source);
  const { model, source, target } = request;
  const query = { text: sentence.line, model, source, target };
  byId("attention").href = addressOf(
    "v1/page", Object.entries(query).filter(([, value]) => value !== undefined),
  );
  byId("pairs-details").hidden = sentence.links.length === 0;
  byId("pairs").replaceChildren(
    ...wordPairs(sentence).map(([sourceWord, targetWord]) =>
      element("li", {}, element("bdi", {}, sourceWord), " – ", element("bdi", {}, targetWord))),
  );
  loadHypotheses({ ...request, text: sentence.line }, sentence, direction.target);
}

/** Keep the translations of a text that is one sentence. */
export function keepHypotheses(request, translations) {
  hypothesesByRequest.set(JSON.stringify(request), translations);
  if (hypothesesByRequest.size <= MAX_REQUESTS) return;
  const [oldest] = hypothesesByRequest.keys();
  hypothesesByRequest.delete(oldest);
}

/** Cancel the request for translations. */
export function forgetSentence() {
  clearTimeout(timer);
  controller?.abort();
  pendingRequest = "";
}

function loadHypotheses(request, sentence, language) {
  const key = JSON.stringify(request);
  const hypotheses = hypothesesByRequest.get(key);
  // The server may have loaded another model under the same name.
  if (hypotheses?.[0].text === sentence.target) {
    forgetSentence();
    return drawHypotheses(hypotheses, language);
  }
  drawHypotheses([{ text: sentence.target, score: sentence.score }], language);
  if (pendingRequest === key) return;
  // An older request is of another sentence, whether or not a new one follows.
  forgetSentence();
  if (request.n_best < 2) return;
  pendingRequest = key;
  const { signal } = controller = new AbortController();
  timer = setTimeout(async () => {
    try {
      const answer = await requestJson("v1/translate", { body: request, signal });
      keepHypotheses(request, answer.results[0].translations);
      if (!signal.aborted) drawHypotheses(hypothesesByRequest.get(key), language);
    } catch (error) {
      if (signal.aborted) return;
      pendingRequest = "";
      showMessage("sentence-alert", `The other translations are missing. ${error.message}`);
    }
  }, PAUSE_MS);
}

function drawHypotheses(hypotheses, language) {
  showMessage("sentence-alert", "");
  byId("hypotheses").replaceChildren(
    ...hypotheses.map(({ text, score }) => {
      const words = element("span", { dir: "auto" }, text || "(empty)");
      setLanguage(words, language);
      const number = element(
        "span", { class: "score" }, element("span", { class: "unseen" }, "score "), decimal(score, 2),
      );
      return element("li", {}, words, number);
    }),
  );
}

/** Show in words what a place is aligned with; nothing if there is no place. */
export function showReading(sentences, place) {
  const sentence = sentences[place?.index];
  if (!sentence || place.word === null) return showReadingText("");
  const { side, word } = place;
  if (sentence.links.length === 0) {
    return showReadingText("The words of this sentence are not aligned.");
  }
  const other = side === "source" ? "target" : "source";
  // Isolates: a quotation mark stays at its word, whatever the direction of both.
  const quote = (ofSide, index) => `“\u2068${wordText(sentence, ofSide, index)}\u2069”`;
  const words = linkedWords(sentence, side, word).map((index) => quote(other, index));
  const verb = side === "source" ? "is translated as" : "translates";
  showReadingText(
    words.length
      ? `${quote(side, word)} ${verb} ${words.join(", ")}.`
      : `${quote(side, word)} belongs to no word of the ${side === "source" ? "translation" : "text"}.`,
  );
}

function showReadingText(message) {
  if (byId("reading").textContent !== message) byId("reading").textContent = message;
}

/** Save the page of the attention: a link would send no API key. */
export async function followLink(event) {
  if (!currentKey()) return;
  event.preventDefault();
  showMessage("sentence-alert", "");
  try {
    const url = URL.createObjectURL(await requestFile(byId("attention").href));
    element("a", { href: url, download: "attention.html" }).click();
    setTimeout(() => URL.revokeObjectURL(url));
  } catch (error) {
    showMessage("sentence-alert", error.message);
  }
}
