/* Elements of the document. Text is added as text: nothing is parsed as HTML. */

/** Return the element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Return a new element with attributes and children, elements or text. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    // In HTML an attribute is true if it is there.
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/** Show a message, or hide its element if the message is empty. */
export function showMessage(id, message) {
  const node = byId(id);
  node.hidden = !message;
  if (node.textContent !== message) node.textContent = message;
}

/** Fill a list with choices `[value, label]`; keep the selected value if it is among them. */
export function fillSelect(select, choices, selected = select.value) {
  select.replaceChildren(
    ...choices.map(([value, label]) => element("option", { value, dir: "auto" }, label)),
  );
  if (choices.some(([value]) => String(value) === String(selected))) select.value = selected;
}

/** Return a number with separators of thousands. */
export function formatNumber(number) {
  return number.toLocaleString("en");
}

/** Return a number and what it counts, in the singular or the plural. */
export function countPhrase(number, noun) {
  return `${formatNumber(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Return a number with a true minus sign; without one if it rounds to 0. */
export function decimal(number, digits) {
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** Set the language of an element, if the browser knows it. */
export function setLanguage(node, language) {
  try {
    [node.lang] = Intl.getCanonicalLocales(language.replaceAll("_", "-"));
  } catch {
    node.removeAttribute("lang");
  }
}
