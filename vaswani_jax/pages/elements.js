"use strict";

/* Elements of the document. Text goes in as text only: nothing is read as HTML. */

const SVG = "http://www.w3.org/2000/svg";

/** Return the element of the page with this id. */
function byId(id) {
  return document.getElementById(id);
}

/** Return a new HTML element with attributes and children, elements or text. */
function element(tag, attributes = {}, ...children) {
  return fillElement(document.createElement(tag), attributes, children);
}

/** Return a new element of SVG. */
function svg(tag, attributes = {}, ...children) {
  return fillElement(document.createElementNS(SVG, tag), attributes, children);
}

function fillElement(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    // Attributes that are false or unknown are left out, true ones have no value.
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** Fill a fieldset with one radio button for each `[value, label]`. */
function fillChoice(fieldset, choices, onChange) {
  const legend = fieldset.querySelector("legend");
  const labels = choices.map(([value, label]) => {
    const input = element("input", {
      type: "radio", name: fieldset.id, value, id: `${fieldset.id}-${value}`,
    });
    input.addEventListener("change", () => onChange(value));
    return element("label", {}, input, element("span", {}, label));
  });
  fieldset.replaceChildren(legend, element("div", {}, ...labels));
}

/** Press the radio button of a value. */
function setChoice(fieldset, value) {
  for (const input of fieldset.querySelectorAll("input")) {
    input.checked = input.value === String(value);
  }
}

/** Return the width of a text in CSS pixels, in the font of the drawings. */
function textWidth(text, size) {
  const context = (textWidth.canvas ??= document.createElement("canvas")).getContext("2d");
  context.font = `${size}px ${FONT}`;
  return context.measureText(text).width;
}

/* The font of the drawings, which an exported file names too. */
const FONT = 'system-ui, "DejaVu Sans", "Noto Sans", sans-serif';

/** Return a text that is at most `limit` pixels wide, with an ellipsis if it was cut. */
function fitText(text, limit, size) {
  if (textWidth(text, size) <= limit) return text;
  // A letter and its combining marks stay together.
  const letters = [...new Intl.Segmenter().segment(text)].map((part) => part.segment);
  while (letters.length > 1 && textWidth(`${letters.join("")}…`, size) > limit) letters.pop();
  return `${letters.join("")}…`;
}

/** Return a list as a phrase: "1, 2 and 5". */
function joinItems(items) {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

/** Return numbers as a phrase with ranges: "1 to 8", "2, 5 and 7". */
function joinNumbers(numbers) {
  const isRange = numbers.length > 2 && numbers.at(-1) - numbers[0] === numbers.length - 1;
  return isRange ? `${numbers[0]} to ${numbers.at(-1)}` : joinItems(numbers);
}

/** Return a number with a true minus sign, which what rounds to 0 does not have. */
function decimal(number, digits) {
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}
