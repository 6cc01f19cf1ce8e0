"use strict";

/* The drawing as a file, SVG or PNG. The styles of the page go into it. */

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
  "opacity", "font-family", "font-size", "font-weight", "direction", "visibility",
];

/** Return the drawing in the light theme, with its caption below. */
function copyDrawing() {
  const root = document.documentElement;
  root.dataset.theme = "light";
  root.classList.add("exported");
  try {
    return copyStyled();
  } finally {
    root.classList.remove("exported");
    root.dataset.theme = state.theme;
  }
}

/** Return the name of a file without its ending: what the drawing shows. */
function fileName() {
  const sentence = `sentence-${currentSentence().line}`;
  if (state.view === "beam") return `beam-${sentence}`;
  const heads = state.view === "matrix" ? state.heads.slice(0, 1) : state.heads;
  const isAll = heads.length === sizesOf(currentView(), state.kind).heads;
  const which = isAll ? "all-heads" : `heads-${heads.join("-") || "none"}`;
  return [state.view, sentence, state.kind, `layer-${state.layer}`, which].join("-");
}

/** Return the drawing as an element of its own, with the styles of the page. */
function copyStyled() {
  const drawn = byId("drawing").querySelector("svg");
  const copy = drawn.cloneNode(true);
  const copies = copy.querySelectorAll("*");
  drawn.querySelectorAll("*").forEach((node, index) => {
    const computed = getComputedStyle(node);
    for (const name of STYLES) copies[index].setAttribute(name, computed.getPropertyValue(name));
    for (const name of ["tabindex", "class", "role"]) copies[index].removeAttribute(name);
  });
  const page = getComputedStyle(document.body);
  const caption = `${byId("caption").textContent} ${choiceText()}`.trim();
  const [width, height] = ["width", "height"].map((name) => Number(drawn.getAttribute(name)));
  const rows = wrapText(caption, width - 2 * MARGIN, 12);
  const texts = rows.map((text, row) =>
    svg(
      "text",
      { x: MARGIN, y: height + 18 + row * 17, "font-size": 12, "font-family": FONT, fill: page.color },
      text,
    ),
  );
  const total = height + 12 + rows.length * 17;
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("height", total);
  copy.setAttribute("viewBox", `0 0 ${width} ${total}`);
  copy.removeAttribute("class");
  copy.removeAttribute("tabindex");
  copy.prepend(
    svg("title", {}, caption),
    svg("rect", { width, height: total, fill: page.backgroundColor }),
  );
  copy.append(...texts);
  return copy;
}

/** Return a text as lines that are at most `limit` pixels wide. */
function wrapText(text, limit, size) {
  const rows = [""];
  for (const word of text.split(" ")) {
    const longer = `${rows.at(-1)} ${word}`.trim();
    if (rows.at(-1) && textWidth(longer, size) > limit) rows.push(word);
    else rows[rows.length - 1] = longer;
  }
  return rows;
}

function saveSvg() {
  const text = new XMLSerializer().serializeToString(copyDrawing());
  save(new Blob([text], { type: "image/svg+xml" }), `${fileName()}.svg`);
}

// What all browsers can draw: Firefox has the shortest side, Safari the fewest pixels.
const LONGEST_SIDE = 32_767;
const MOST_PIXELS = 2 ** 24;

/** Draw the SVG on a canvas, of twice its size if that can be drawn, and save that. */
async function savePng() {
  const copy = copyDrawing();
  const [width, height] = ["width", "height"].map((name) => Number(copy.getAttribute(name)));
  const scale = Math.min(
    2, LONGEST_SIDE / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)),
  );
  const image = new Image();
  const text = new XMLSerializer().serializeToString(copy);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  try {
    await image.decode();
    const canvas = element("canvas", {
      width: Math.floor(scale * width), height: Math.floor(scale * height),
    });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    save(blob, `${fileName()}.png`);
  } catch {
    byId("alarm").hidden = false;
    byId("alarm").textContent = "The browser cannot save this drawing as PNG: save it as SVG.";
  }
}

/** Offer bytes as a file; nothing leaves the browser. */
function save(blob, name) {
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
