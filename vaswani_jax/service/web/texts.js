/* Texts and their sentences. The server counts characters, JavaScript UTF-16 units: an
   emoji is one character and has a length of 2. */

/** Return how many characters a text has. */
export function countCharacters(text) {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/** Return where each character of a text begins in its string, and where the text ends. */
export function characterPlaces(text) {
  const places = [];
  let place = 0;
  for (const character of text) {
    places.push(place);
    place += character.length;
  }
  places.push(place);
  return places;
}

/**
 * Return a sentence of an answer with its words and their links.
 *
 * `source` and `target` are its texts, `begin` and `end` its place in the string of the
 * text, `gap` what stands before its translation. `sides.source` are its words that the
 * translation aligns, `sides.target` the words of the translation, each with its place
 * in its own text; `links` pairs their indices. `line` is the source as the model reads
 * it: after the tags that earlier sentences left in force.
 *
 * @param {object} entry An entry of `sentences`: its places count characters.
 * @param {object} texts The whole texts' strings, and the places of their characters.
 */
export function readSentence(entry, { text, places, target, gap }) {
  const begin = places[entry.source_begin];
  const end = places[entry.source_end];
  const source = text.slice(begin, end);
  const targetPlaces = characterPlaces(target);
  const pairs = (entry.alignment ?? []).map(([sourceBegin, sourceEnd, targetBegin, targetEnd]) => [
    [places[sourceBegin] - begin, places[sourceEnd] - begin],
    [targetPlaces[targetBegin - entry.target_begin], targetPlaces[targetEnd - entry.target_begin]],
  ]);
  const sides = {
    source: distinctSpans(pairs.map(([span]) => span), source.length),
    target: distinctSpans(pairs.map(([, span]) => span), target.length),
  };
  const indexOf = (spans, [begin]) => spans.findIndex((span) => span.begin === begin);
  const links = pairs
    .map(([source, target]) => [indexOf(sides.source, source), indexOf(sides.target, target)])
    .filter(([source, target]) => source >= 0 && target >= 0);
  const line = (entry.inherited_tags ?? "") + source;
  return { source, line, target, begin, end, gap, score: entry.score, sides, links };
}

/**
 * Return places in the order of the text, each once, none over another; the whole text
 * if there are none.
 */
function distinctSpans(spans, length) {
  const sorted = spans
    .filter(([begin, end]) => begin >= 0 && begin < end && end <= length)
    .sort(([begin], [otherBegin]) => begin - otherBegin);
  const distinct = [];
  for (const [begin, end] of sorted) {
    if (begin >= (distinct.at(-1)?.end ?? 0)) distinct.push({ begin, end });
  }
  return distinct.length ? distinct : [{ begin: 0, end: length }];
}

/**
 * Return what stands before the translation of a sentence that has arrived: as in the
 * text between paragraphs, spaces in one.
 */
export function gapBefore(entry, { sourceGap, lastEnd }) {
  const length = entry.target_begin - lastEnd;
  const isCopy = /[\n\r\v\f\x85\u2028\u2029]/.test(sourceGap) || entry.target_begin === length;
  return isCopy && countCharacters(sourceGap) === length ? sourceGap : " ".repeat(length);
}

/** Return the sentences of a whole answer about one text. */
export function readAnswer(result, text) {
  const places = characterPlaces(text);
  const translation = result.translations[0].text;
  const targetPlaces = characterPlaces(translation);
  let last = 0;
  const sentences = result.sentences.map((entry) => {
    const begin = targetPlaces[entry.target_begin];
    const target = translation.slice(begin, targetPlaces[entry.target_end]);
    const gap = translation.slice(last, begin);
    last = targetPlaces[entry.target_end];
    return readSentence(entry, { text, places, target, gap });
  });
  return { sentences, tail: translation.slice(last), translations: result.translations };
}

/** Return the words of a sentence that are aligned with one of the other side. */
export function linkedWords(sentence, side, word) {
  const at = side === "source" ? 0 : 1;
  return sentence.links.filter((link) => link[at] === word).map((link) => link[1 - at]);
}

/** Return the text of a word of one side of a sentence. */
export function wordText(sentence, side, word) {
  const { begin, end } = sentence.sides[side][word];
  return sentence[side].slice(begin, end);
}

/** Return the pairs of words of a sentence in the order of its translation. */
export function wordPairs(sentence) {
  return sentence.links
    .toSorted(([, target], [, otherTarget]) => target - otherTarget)
    .map(([source, target]) => [
      wordText(sentence, "source", source), wordText(sentence, "target", target),
    ]);
}
