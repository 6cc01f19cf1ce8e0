"""Draw a constituency tree (section 6.3) above a row of its tags and words."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from vaswani_jax.data import linearization, treebank
from vaswani_jax.data.treebank import Tree
from vaswani_jax.plots import canvas

FONT_POINTS = 10
TITLE_CHARACTERS = 60
MOST_WORDS = 100
# Okabe and Ito's blue, as in learning curves; greys for what matters less.
LABEL_COLOUR, TAG_COLOUR, WORD_COLOUR = "#0072B2", "0.35", "#000000"
LINE_COLOUR = "0.6"
MARGIN_INCHES = 0.2  # around the picture
GAP_INCHES = 0.16  # between neighbours
REACH_INCHES = 0.1  # from the middle of a text to its lines
TAG_RISE_INCHES = 0.2  # from words to tags
RISE_INCHES = 0.36  # from one row of constituents to the next
TITLE_RISE_INCHES = 0.22  # of a line of the title
CAPITAL_INCHES = 0.1  # the height of a capital letter
Segment = tuple[tuple[float, float], tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Node:
    """A constituent of a picture, or a tag with its word below.

    Attributes:
        label: The category or the tag; "" for a tag that all words have (XX).
        word: The word of a tag; "" for a constituent.
        parent: The number of the constituent above; None for the whole.
        row: 0 for tags, one more than its highest child for a constituent.
        x: The middle of its texts, in inches from the left.
        y: The middle of its label, in inches above the words.
    """

    label: str
    word: str
    parent: int | None
    row: int
    x: float
    y: float


@dataclasses.dataclass
class _Part:
    """A part of a tree before it has its place.

    Attributes:
        tree: The constituent or tag.
        parent: The number of the constituent above.
        children: Their numbers.
        row: See `Node`.
        left: How far it reaches to the left of its middle, in inches.
        right: How far to the right.
        offset: From the middle of the constituent above to its own.
    """

    tree: Tree
    parent: int | None
    children: list[int] = dataclasses.field(default_factory=list)
    row: int = 0
    left: float = 0.0
    right: float = 0.0
    offset: float = 0.0


def draw(tree: Tree, *, title: str = "") -> Any:
    """Draw a tree, as wide as its words and as high as it is deep.

    >>> [tree] = treebank.parse(["(S (NP (PRP I)) (VP (VBP am)))"], name="example")
    >>> draw(tree, title="A short sentence").savefig("tree.svg")  # doctest: +SKIP

    Args:
        tree: Its outermost bracket is left out if it is no constituent (ROOT, TOP).
        title: What stands above the tree.

    Returns:
        A figure.

    Raises:
        ValueError: There are more words than a picture has room for.
    """
    check_length(len(tree.leaves()))
    font = _font(str(tree))
    width = functools.cache(lambda text: canvas.text_inches(text, font))
    nodes = arrange(tree, width)
    halves = [max(width(node.label), width(node.word)) / 2 for node in nodes]
    left = min(node.x - half for node, half in zip(nodes, halves, strict=True))
    right = max(node.x + half for node, half in zip(nodes, halves, strict=True))
    title_font = _font(title)
    title_lines = canvas.wrap(title, TITLE_CHARACTERS).splitlines()
    title_widths = [canvas.text_inches(line, title_font) for line in title_lines]
    middle = (left + right) / 2
    half = max(right - left, *title_widths, 0) / 2 + MARGIN_INCHES
    bottom = -REACH_INCHES - MARGIN_INCHES
    top = (
        nodes[0].y + REACH_INCHES + MARGIN_INCHES + TITLE_RISE_INCHES * len(title_lines)
    )
    # The words stand at height 0.
    axes = canvas.new_axes((middle - half, middle + half), (bottom, top))
    axes.text(
        *(middle, top - MARGIN_INCHES / 2, "\n".join(title_lines)),
        ha="center",
        va="top",
        **title_font,
    )
    write = functools.partial(axes.text, ha="center", va="baseline", **font)
    for node in nodes:
        colour = TAG_COLOUR if node.word else LABEL_COLOUR
        write(node.x, node.y - CAPITAL_INCHES / 2, node.label, color=colour)
        write(node.x, -CAPITAL_INCHES / 2, node.word, color=WORD_COLOUR)
    for start, end in segments(nodes):
        axes.plot(*zip(start, end, strict=True), color=LINE_COLOUR, linewidth=1)
    return axes.figure


def check_length(num_words: int) -> None:
    """Refuse a sentence of more words than a picture has room for.

    Raises:
        ValueError: It has more.
    """
    if num_words > MOST_WORDS:
        raise ValueError(
            f"a picture has room for {MOST_WORDS} words, the sentence has "
            f"{num_words}: choose a shorter one"
        )


def _font(text: str) -> dict[str, Any]:
    family = canvas.font_families(text)
    return {"family": family, "size": FONT_POINTS, "parse_math": False}


def segments(nodes: Sequence[Node]) -> list[Segment]:
    """Return the lines of a tree: down from a constituent, across, to its children.

    Args:
        nodes: Those of `arrange`.
    """
    parts: dict[int, list[Node]] = {}
    for node in nodes:
        if node.parent is not None:
            parts.setdefault(node.parent, []).append(node)
    result: list[Segment] = []
    for parent, below in parts.items():
        above = nodes[parent]
        middle = above.y - RISE_INCHES / 2
        result.append(((above.x, above.y - REACH_INCHES), (above.x, middle)))
        result.append(((below[0].x, middle), (below[-1].x, middle)))
        result += [
            ((node.x, middle), (node.x, node.y + REACH_INCHES)) for node in below
        ]
    return result


def arrange(tree: Tree, width: Callable[[str], float]) -> list[Node]:
    """Return the parts of a tree with their places: depth first, from the left.

    A constituent stands in the middle over its first and last child, one row above
    the highest of them, and has a strip of the picture for itself from top to bottom.
    So neither texts nor lines of different constituents meet.

    Args:
        tree: Its outermost bracket is left out if it is no constituent (ROOT, TOP).
        width: The width of a text in inches.
    """
    parts = _depth_first(_skip_roots(tree))
    has_tags = any(leaf.label != linearization.WORD for leaf in tree.leaves())
    for part in reversed(parts):
        children = [parts[child] for child in part.children]
        _measure(part, children, (width(part.tree.label), width(part.tree.word)))
    xs: list[float] = []
    for part in parts:
        xs.append(part.left if part.parent is None else xs[part.parent] + part.offset)
    tag_height = TAG_RISE_INCHES if has_tags else 0.0
    return [
        Node(
            label=part.tree.label if part.children or has_tags else "",
            word=part.tree.word,
            parent=part.parent,
            row=part.row,
            x=x,
            y=tag_height + RISE_INCHES * part.row,
        )
        for part, x in zip(parts, xs, strict=True)
    ]


def _skip_roots(tree: Tree) -> Tree:
    """Return the only child of outermost brackets that are no constituents."""
    while treebank.is_root(tree) and len(tree.children) == 1:
        [tree] = tree.children
    return tree


def _depth_first(tree: Tree) -> list[_Part]:
    """Return the parts of a tree, each constituent before what it has."""
    parts: list[_Part] = []
    stack: list[tuple[Tree, int | None]] = [(tree, None)]
    while stack:
        part, parent = stack.pop()
        if parent is not None:
            parts[parent].children.append(len(parts))
        stack.extend((child, len(parts)) for child in reversed(part.children))
        parts.append(_Part(part, parent))
    return parts


def _measure(
    part: _Part, children: Sequence[_Part], text_widths: Sequence[float]
) -> None:
    """Set what depends on a part's children: its row, its reach, their offsets."""
    part.left = part.right = (max(text_widths) + GAP_INCHES) / 2
    if not children:
        return
    edges = itertools.accumulate(child.left + child.right for child in children)
    middles = [edge - child.right for edge, child in zip(edges, children, strict=True)]
    middle = (middles[0] + middles[-1]) / 2
    for child, x in zip(children, middles, strict=True):
        child.offset = x - middle
    part.row = 1 + max(child.row for child in children)
    part.left = max(part.left, middle)
    part.right = max(part.right, middles[-1] + children[-1].right - middle)
