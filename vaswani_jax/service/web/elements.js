/* Elements of the document. Text goes in as text only: nothing is read as HTML. */

/** Return the element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}

/** Return a new element with attributes and children, elements or text. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    // Attributes that are false or unknown are left out, true ones have no value.
    if (value === null || value === undefined || value === false) continue;
    node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/** Show a message in words, or hide its place where there is none. */
export function showMessage(id, message) {
  const node = byId(id);
  node.hidden = !message;
  if (node.textContent !== message) node.textContent = message;
}

/** Fill a list of choices with `[value, label]` and keep the chosen one if it stays. */
export function fillSelect(select, choices, chosen = select.value) {
  select.replaceChildren(
    ...choices.map(([value, label]) => element("option", { value, dir: "auto" }, label)),
  );
  if (choices.some(([value]) => String(value) === String(chosen))) select.value = chosen;
}

/** Return a number with separators of thousands. */
export function formatNumber(number) {
  return number.toLocaleString("en");
}

/** Return a number and what it counts, in the singular or the plural. */
export function countPhrase(number, noun) {
  return `${formatNumber(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Return a number with a true minus sign, which what rounds to 0 does not have. */
export function decimal(number, digits) {
  const text = number.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** Name the language of an element, unless it is none that a browser knows. */
export function setLanguage(node, language) {
  try {
    [node.lang] = Intl.getCanonicalLocales(language.replaceAll("_", "-"));
  } catch {
    node.removeAttribute("lang");
  }
}
