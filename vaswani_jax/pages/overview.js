"use strict";

/* Every head of the three attentions as a small matrix; each opens its lines. */

const SORTS = {
  layer: "layer and head",
  entropy: "entropy, sharp first",
  importance: "importance, largest first",
};

/** Return a head's matrix as a picture: a pixel for each weight. */
function thumbnail(view, kind, layer, head) {
  const { rows, columns } = sizesOf(view, kind);
  const canvas = element("canvas", { width: columns, height: rows, class: "thumbnail" });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const [red, green, blue] = rampColor();
  headBytes(view, kind, layer, head).forEach((level, index) => {
    image.data.set([red, green, blue, level], 4 * index);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

/** Return red, green and blue of the colour of full weight. */
function rampColor() {
  const probe = byId("ramp");
  return getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).map(Number);
}

function drawOverview() {
  const view = currentView();
  const select = element("select", { id: "sort", "data-key": "sort" });
  for (const [value, label] of Object.entries(SORTS)) {
    if (value === "importance" && !PAGE.heads) continue;
    select.append(element("option", { value, selected: value === state.sort }, label));
  }
  select.addEventListener("change", () => change({ sort: select.value }));
  const about = element(
    "p", {},
    "A row of a small matrix is a token that looks, a column one that is looked at; dark is a large weight. ",
    "Entropy is 0 if each token looks at one token, and 1 if it looks at all alike. ",
    "Press a matrix to see its lines.",
  );
  byId("other").append(
    about,
    element("label", { class: "field inline" }, "Sort by ", select),
    ...Object.keys(KINDS).map((kind) => overviewOf(view, kind)),
  );
}

function overviewOf(view, kind) {
  const { layers, heads } = sizesOf(view, kind);
  const items = [];
  for (let layer = 1; layer <= layers; layer++) {
    for (let head = 1; head <= heads; head++) {
      const entropy = entropyOf(view, kind, layer, head);
      const importance = headRecord(kind, layer, head)?.importance ?? null;
      items.push({ kind, layer, head, entropy, importance });
    }
  }
  const title = element("h2", {}, KINDS[kind].name);
  if (state.sort === "layer") {
    const rows = Array.from({ length: layers }, (_, index) =>
      element(
        "div", { class: "layer" },
        element("span", { class: "hint" }, `layer ${index + 1}`),
        element(
          "div", { class: "thumbnails" },
          ...items.filter(({ layer }) => layer === index + 1).map((item) => openButton(view, item)),
        ),
      ),
    );
    return element("section", {}, title, ...rows);
  }
  items.sort((one, other) =>
    state.sort === "entropy"
      ? one.entropy - other.entropy
      : (other.importance ?? -Infinity) - (one.importance ?? -Infinity),
  );
  return element(
    "section", {}, title,
    element("div", { class: "thumbnails" }, ...items.map((item) => openButton(view, item))),
  );
}

/** Return a button with a head's picture, which opens its lines. */
function openButton(view, { kind, layer, head, entropy, importance }) {
  const roles = rolesOf(kind, layer, head);
  const facts = [
    `${KINDS[kind].short}, layer ${layer}, head ${head}`,
    `entropy ${entropy.toFixed(2)}`,
    importance === null ? null : `importance ${decimal(importance, 4)}`,
    roles || null,
  ].filter(Boolean).join(", ");
  const value = state.sort === "importance" && importance !== null ? decimal(importance, 4) : entropy.toFixed(2);
  const name = state.sort === "layer" ? `head ${head}` : `${layer}.${head}: ${value}`;
  const button = element(
    "button",
    { type: "button", class: "open", "aria-label": facts, title: facts, "data-key": `open-${kind}-${layer}-${head}` },
    thumbnail(view, kind, layer, head), element("span", {}, name),
  );
  button.addEventListener("click", () => change({ view: "lines", kind, layer, heads: [head], pinned: null }));
  return button;
}
