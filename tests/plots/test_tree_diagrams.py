"""Drawn trees: each text has its place, and nothing meets that does not belong."""

import itertools
import pathlib
import random
from typing import Any

import pytest

from tests.plots import figures
from vaswani_jax.data import treebank
from vaswani_jax.data.treebank import Tree
from vaswani_jax.plots import canvas, tree_diagrams
from vaswani_jax.plots.tree_diagrams import Node

pytest.importorskip("matplotlib", reason="matplotlib is not installed: .[plot]")

SENTENCE = (
    "(TOP (S (NP (DT The) (NN $man$)) (VP (VBZ sleeps) (ADVP (RB very) (RB soundly))) "
    "(. .)))"
)
HEIGHT = 0.12  # Of a text, in inches: less than half of the distance of two rows.


def read(text: str) -> Tree:
    [tree] = treebank.parse([text], name="example")
    return tree


def width(text: str) -> float:
    """Return a width of which longer texts have more."""
    return 0.08 * len(text)


def random_tree(generator: random.Random, num_words: int) -> Tree:
    """Return a tree with labels and words of any width, and unary constituents."""
    if num_words == 1 and generator.random() < 0.6:
        tag = generator.choice([",", "NN", "-LRB-", "A-VERY-LONG-TAG"])
        return Tree(tag, word="x" * generator.choice([1, 2, 9]))
    label = generator.choice(["S", "NP", "WHADVP", "A-LABEL-WIDER-THAN-ITS-PARTS"])
    num_parts = min(num_words, generator.choice([1, 2, 2, 3, 5]))
    cuts = sorted(generator.sample(range(1, num_words), num_parts - 1))
    sizes = [end - start for start, end in itertools.pairwise([0, *cuts, num_words])]
    return Tree(label, tuple(random_tree(generator, size) for size in sizes))


TREES = [
    read(SENTENCE),
    read("(NP (NN a))"),
    *(random_tree(random.Random(seed), 1 + 2 * seed) for seed in range(20)),
]


def boxes(nodes: list[Node]) -> list[tuple[float, float, float, float]]:
    """Return left, right, bottom and top of each text."""
    texts = [(node.label, node.x, node.y) for node in nodes]
    texts += [(node.word, node.x, 0.0) for node in nodes]
    return [
        (x - width(text) / 2, x + width(text) / 2, y - HEIGHT / 2, y + HEIGHT / 2)
        for text, x, y in texts
        if text
    ]


def test_a_sentence_has_its_words_in_order_in_one_row_with_tags_above() -> None:
    nodes = tree_diagrams.arrange(read(SENTENCE), width)
    words = sorted((node for node in nodes if node.word), key=lambda node: node.x)
    assert [node.word for node in words] == "The $man$ sleeps very soundly .".split()
    assert [node.label for node in words] == "DT NN VBZ RB RB .".split()
    assert len({node.y for node in words}) == 1
    # The outermost bracket is no constituent; the others are above their parts.
    labels = [(node.label, node.row) for node in nodes if not node.word]
    assert labels == [("S", 3), ("NP", 1), ("VP", 2), ("ADVP", 1)]
    assert nodes[0].parent is None


@pytest.mark.parametrize("number", range(len(TREES)))
def test_parents_stand_over_the_middle_of_their_parts(number: int) -> None:
    nodes = tree_diagrams.arrange(TREES[number], width)
    for index, node in enumerate(nodes):
        parts = [part for part in nodes if part.parent == index]
        if parts:
            assert node.x == pytest.approx((parts[0].x + parts[-1].x) / 2)
            assert node.row == 1 + max(part.row for part in parts)
            assert all(node.y > part.y for part in parts)
    words = [node for node in nodes if node.word]
    assert [node.word for node in words] == [
        leaf.word for leaf in TREES[number].leaves()
    ]
    assert all(left.x < right.x for left, right in itertools.pairwise(words))


@pytest.mark.parametrize("number", range(len(TREES)))
def test_no_text_meets_another_or_a_line(number: int) -> None:
    nodes = tree_diagrams.arrange(TREES[number], width)
    texts = boxes(nodes)
    for first, second in itertools.combinations(texts, 2):
        assert not overlap(first, second)
    assert min(left for left, *_ in texts) >= 0
    lines = [
        (*sorted((x0, x1)), *sorted((y0, y1)))
        for (x0, y0), (x1, y1) in tree_diagrams.segments(nodes)
    ]
    for line in lines:
        # Upright or level, so that its box is the line itself.
        assert line[0] == line[1] or line[2] == line[3]
        assert not any(overlap(line, text) for text in texts)


def overlap(first: tuple[float, ...], second: tuple[float, ...]) -> bool:
    """Return whether two boxes have a point in common, but for rounding."""
    (left, right, bottom, top), rounding = first, 1e-9
    return (
        left < second[1] - rounding
        and second[0] < right - rounding
        and bottom < second[3] - rounding
        and second[2] < top - rounding
    )


def test_each_part_hangs_on_its_parent() -> None:
    """A constituent has a stem and a bar, and each of its parts hangs there."""
    nodes = tree_diagrams.arrange(read(SENTENCE), width)
    segments = tree_diagrams.segments(nodes)
    num_constituents = sum(not node.word for node in nodes)
    assert len(segments) == 2 * num_constituents + len(nodes) - 1
    reach = tree_diagrams.REACH_INCHES
    for node in nodes:
        if node.parent is not None:
            above = nodes[node.parent]
            [drop] = [s for s in segments if s[1] == (node.x, node.y + reach)]
            bars = [s for s in segments if s[0][1] == s[1][1] == drop[0][1]]
            assert any(s[0][0] <= node.x <= s[1][0] for s in bars)
            assert ((above.x, above.y - reach), (above.x, drop[0][1])) in segments


def test_the_picture_shows_every_text_within_its_borders(
    tmp_path: pathlib.Path,
) -> None:
    title = "runs/$a$_" + "long" * 40
    figure = tree_diagrams.draw(read(SENTENCE), title=title)
    figures.check_nothing_is_clipped(figure)
    shown = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert shown[0].replace("\n", "") == title
    assert sorted(filter(None, shown[1:])) == sorted(
        "S NP DT The NN $man$ VP VBZ sleeps ADVP RB very RB soundly . .".split()
    )
    canvas.save(figure, tmp_path / "tree.svg")
    assert "<!-- soundly -->" in (tmp_path / "tree.svg").read_text()


def test_drawn_texts_do_not_meet_and_the_width_grows_with_the_words() -> None:
    tree = random_tree(random.Random(1), 40)
    figure = tree_diagrams.draw(tree)
    figures.check_nothing_is_clipped(figure)
    extents = [extent(text) for text in figure.axes[0].texts if text.get_text()]
    for first, second in itertools.combinations(extents, 2):
        assert not first.overlaps(second)
    few = tree_diagrams.draw(random_tree(random.Random(1), 5))
    assert few.get_figwidth() < figure.get_figwidth() / 3


def extent(text: Any) -> Any:
    return text.get_window_extent()


def test_words_without_tags_stand_right_below_their_constituent() -> None:
    nodes = tree_diagrams.arrange(read("(S (NP (XX the) (XX man)) (XX sleeps))"), width)
    assert [(node.label, node.word, node.y) for node in nodes if node.word] == [
        *(("", "the", 0), ("", "man", 0), ("", "sleeps", 0))
    ]
    figures.check_nothing_is_clipped(tree_diagrams.draw(read("(S (XX Yes))")))


def test_a_deep_tree_is_drawn_without_recursion() -> None:
    tree = Tree("NN", word="a")
    for _ in range(3000):
        tree = Tree("NP", (tree,))
    assert tree_diagrams.arrange(tree, width)[0].row == 3000


def test_the_same_part_twice_has_two_places() -> None:
    part = Tree("NN", word="ha")
    nodes = tree_diagrams.arrange(Tree("NP", (part, part)), width)
    assert nodes[1].x < nodes[0].x < nodes[2].x


def test_a_sentence_of_too_many_words_is_refused() -> None:
    most = tree_diagrams.MOST_WORDS
    tree = Tree("S", (Tree("NN", word="a"),) * (most + 1))
    with pytest.raises(ValueError, match=f"room for {most} words, .* has {most + 1}"):
        tree_diagrams.draw(tree)
