"use strict";

/* From the JSON of the page to a head's weights between the tokens that are shown. */

const VERSION = 1;
const PAGE = JSON.parse(byId("data").textContent);

/* The three attentions of figure 1: which subwords look, and which are looked at. */
const KINDS = {
  encoder: { name: "Encoder self-attention", short: "encoder", rows: "source", columns: "source" },
  decoder: { name: "Decoder self-attention", short: "decoder", rows: "target_in", columns: "target_in" },
  memory: { name: "Encoder-decoder attention", short: "encoder-decoder", rows: "target_out", columns: "source" },
};

/** Return `{layers, heads, rows, columns}` of one attention of a view. */
function sizesOf(view, kind) {
  const [layers, heads, rows, columns] = view.attention.shapes[kind];
  return { layers, heads, rows, columns };
}

const bytesByAttention = new WeakMap();

/** Return the bytes of all layers and heads; a sentence is decoded when it is shown. */
function bytesOf(view, kind) {
  const cache = bytesByAttention.get(view.attention) ?? {};
  bytesByAttention.set(view.attention, cache);
  cache[kind] ??= Uint8Array.from(atob(view.attention[kind]), (letter) => letter.charCodeAt(0));
  return cache[kind];
}

/** Return the bytes of one head, row by row; layers and heads count from 1. */
function headBytes(view, kind, layer, head) {
  const { heads, rows, columns } = sizesOf(view, kind);
  const start = ((layer - 1) * heads + head - 1) * rows * columns;
  return bytesOf(view, kind).subarray(start, start + rows * columns);
}

/** Return a token as it is read: without the mark that begins a word. */
function plainText(text) {
  return text.replaceAll("▁", "") || text;
}

/** Return a token as it is drawn: the mark that begins a word is thinner. */
function displayText(text) {
  return isolate(text.replaceAll("▁", "_"));
}

/** Return a text which, if it runs from right to left, leaves its surroundings alone. */
function isolate(text) {
  return isRightToLeft([{ text }]) ? `\u2067${text}\u2069` : text;
}

/**
 * Return the tokens of a side: subwords, or words of several positions.
 *
 * A token has its `text`, its `positions`, and `isMark` if it is the begin or end mark.
 */
function tokensOf(sentence, view, side, unit) {
  const subwords = view.attention[side];
  const words = {
    source: sentence.source_words,
    target_out: view.target_words,
    // What the decoder reads is the translation after a begin mark.
    target_in: [-1, ...view.target_words.slice(0, subwords.length - 1)],
  }[side];
  const tokens = [];
  subwords.forEach((text, position) => {
    const last = tokens.at(-1);
    const word = words[position];
    if (unit === "words" && last && word >= 0 && word === last.word) {
      last.text += text;
      last.positions.push(position);
    } else {
      tokens.push({ text, word, positions: [position], isMark: word < 0 });
    }
  });
  if (unit === "words") {
    for (const token of tokens) token.text = token.text.replaceAll("▁", " ").trim() || token.text;
  }
  return tokens;
}

const LEAST_TOTAL = 0.1;

/**
 * Return a head's weights from each token of `rows` to each of `columns`.
 *
 * The weights on the subwords of an attended word are summed, those of the subwords of
 * the word that attends are averaged (Clark et al. 2019): the rows still sum to 1. A
 * row of which little is left is not rescaled: the rounding would grow with it.
 */
function matrixOf(view, { kind, layer, head, rows, columns, isRescaled }) {
  const bytes = headBytes(view, kind, layer, head);
  const width = sizesOf(view, kind).columns;
  return rows.map((row) => {
    const weights = columns.map((column) => {
      let sum = 0;
      for (const query of row.positions) {
        for (const key of column.positions) sum += bytes[query * width + key];
      }
      return sum / PAGE.levels / row.positions.length;
    });
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return isRescaled && total >= LEAST_TOTAL ? weights.map((weight) => weight / total) : weights;
  });
}

/**
 * Return how far the sum of a row is from 1 at most, and how far rounding can take it.
 *
 * A row of K weights, each rounded to half a level, may be wrong by K half levels.
 */
function rowError(view, kind) {
  const bytes = bytesOf(view, kind);
  const { columns } = sizesOf(view, kind);
  let largest = 0;
  for (let start = 0; start < bytes.length; start += columns) {
    let sum = 0;
    for (let key = 0; key < columns; key++) sum += bytes[start + key];
    largest = Math.max(largest, Math.abs(sum / PAGE.levels - 1));
  }
  return { largest, allowed: (columns / 2 + 1) / PAGE.levels };
}

/**
 * Return how broadly a head looks: the mean over rows of the entropy over its maximum.
 *
 * 0 is one token alone, 1 is all alike. A decoder's row may look at itself and earlier
 * ones; the first has no choice and does not count.
 */
function entropyOf(view, kind, layer, head) {
  const bytes = headBytes(view, kind, layer, head);
  const { rows, columns } = sizesOf(view, kind);
  let sum = 0;
  let count = 0;
  for (let row = 0; row < rows; row++) {
    const visible = kind === "decoder" ? row + 1 : columns;
    if (visible < 2) continue;
    let entropy = 0;
    for (let column = 0; column < visible; column++) {
      const weight = bytes[row * columns + column] / PAGE.levels;
      if (weight > 0) entropy -= weight * Math.log(weight);
    }
    sum += entropy / Math.log(visible);
    count += 1;
  }
  return count ? Math.min(1, sum / count) : 0;
}

const RIGHT_TO_LEFT = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/gu;

/** Return whether most letters of the tokens run from right to left. */
function isRightToLeft(tokens) {
  const text = tokens.map((token) => token.text).join("");
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  return (text.match(RIGHT_TO_LEFT)?.length ?? 0) > letters / 2;
}

/** Return the language of a side, null if it is not known. */
function languageOf(side) {
  return (side === "source" ? PAGE.source_language : PAGE.target_language) || null;
}
