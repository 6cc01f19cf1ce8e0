"""EVALB itself, and the metric of the parser supar, score trees as we do.

`make oracles` fetches both: EVALB's C source is part of a wheel of allennlp, supar's
metric two files of a wheel, whose other requirements neither needs.
"""

import functools
import importlib.util
import pathlib
import random
import re
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.evaluation import perturbed_trees
from vaswani_jax.data import treebank
from vaswani_jax.data.treebank import Tree
from vaswani_jax.evaluation import bracketing
from vaswani_jax.evaluation.bracketing_score import BracketingScore

ORACLES = pathlib.Path(sys.prefix, "oracles")
EVALB = ORACLES / "allennlp/tools/EVALB"
SUPAR = ORACLES / "supar/utils"
GUM = pathlib.Path(__file__).parents[3] / "shared/data/gum_trees/dev.trees.txt"
# EVALB's and ours, of one of which a rounded figure is known.
HALF_A_DIGIT = 0.005 + 1e-9
Evalb = Callable[..., dict[str, float]]


@pytest.fixture(scope="module")
def evalb(tmp_path_factory: pytest.TempPathFactory) -> Evalb:
    """Return a function that scores lines with the compiled EVALB."""
    if not EVALB.is_dir():
        pytest.skip(f"EVALB's source is not in {EVALB}: make oracles")
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("EVALB needs a C compiler, cc")
    directory = tmp_path_factory.mktemp("evalb")
    source, binary = EVALB / "evalb.c", directory / "evalb"
    flags = ["-std=gnu89", "-w", "-o", str(binary)]
    subprocess.run([compiler, *flags, str(source)], check=True, timeout=120)
    return functools.partial(run_evalb, binary)


def run_evalb(
    binary: pathlib.Path,
    gold: Sequence[str],
    test: Sequence[str],
    *,
    parameters: pathlib.Path = EVALB / "COLLINS.prm",
    changes: str = "",
) -> dict[str, float]:
    """Return what EVALB prints of two lists of lines, by our names.

    Args:
        binary: The program.
        gold: The reference.
        test: A parser's lines.
        parameters: A parameter file.
        changes: Lines that are added to it.
    """
    directory = binary.parent
    for name, lines in (("gold", gold), ("test", test)):
        text = "".join(f"{line}\n" for line in lines)
        (directory / name).write_text(text, encoding="utf-8")
    text = parameters.read_text(encoding="utf-8")
    (directory / "parameters").write_text(f"{text}\n{changes}\n", encoding="utf-8")
    # It stops at so many errors; the parameter file would set this number again.
    arguments = ["-p", "parameters", "-e", "1000000", "gold", "test"]
    printed = subprocess.run(
        [binary, *arguments],
        cwd=directory,
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=120,
    ).stdout
    _, _, summary = printed.partition("=== Summary ===")
    everything, _, short = summary.partition("-- len<=40 --")
    totals = printed.partition("=== Summary ===")[0].rstrip().splitlines()[-1].split()
    figures, short_figures = (
        {
            name.strip(): float(value)
            for name, value in re.findall(r"^(\w.*?)=\s*(\S+)$", block, re.MULTILINE)
        }
        for block in (everything, short)
    )
    return {
        "f1": figures["Bracketing FMeasure"],
        "precision": figures["Bracketing Precision"],
        "recall": figures["Bracketing Recall"],
        "complete_match": figures["Complete match"],
        "crossing": figures["Average crossing"],
        "no_crossing": figures["No crossing"],
        "f1_40": short_figures["Bracketing FMeasure"],
        "tagging": figures["Tagging accuracy"],
        "sentences": figures["Number of Valid sentence"],
        "errors": figures["Number of Error sentence"],
        "skips": figures["Number of Skip  sentence"],
        "matched": float(totals[2]),
        "gold": float(totals[3]),
        "test": float(totals[4]),
    }


def assert_equal_evalb(ours: BracketingScore, evalbs: dict[str, float]) -> None:
    """Compare numbers exactly, and figures to EVALB's two digits."""
    for name in ("sentences", "errors", "skips"):
        assert getattr(ours, name) == evalbs[name], name
    for name in ("matched", "gold", "test"):
        assert getattr(ours.counts, name) == evalbs[name], name
    for name, value in ours.figures().items():
        if name != "f1_unlabelled":
            assert value == pytest.approx(evalbs[name], abs=HALF_A_DIGIT), name


def perturbed_pairs(
    seed: int,
    trees: Sequence[Tree],
    change_leaf: Callable[[Tree, random.Random], Tree],
) -> tuple[list[list[Tree]], list[list[Tree]]]:
    """Return the lines of a treebank and of a bad parser, as lists of trees."""
    generator = random.Random(seed)
    change = functools.partial(change_leaf, generator=generator)
    test = [
        perturbed_trees.perturb(tree, generator, change_leaf=change) for tree in trees
    ]
    return [[tree] for tree in trees], test


def lines_of(sentences: Sequence[Sequence[Tree]]) -> list[str]:
    return [" ".join(map(str, trees)) for trees in sentences]


def random_trees(seed: int, count: int = 60) -> list[Tree]:
    generator = random.Random(seed)
    return [perturbed_trees.random_tree(generator) for _ in range(count)]


SEEDS = pytest.mark.parametrize("seed", range(10))


@SEEDS
def test_files_with_errors_and_skips_have_evalbs_figures(
    evalb: Evalb, seed: int
) -> None:
    gold, test = perturbed_pairs(
        seed, random_trees(seed), perturbed_trees.change_anything
    )
    test[seed] = []
    test[seed + 1] = [*test[seed + 1], Tree("NN", word="more")]
    ours = bracketing.score_as_evalb(gold, test)
    assert ours.skips and ours.errors and ours.sentences > 20
    assert_equal_evalb(ours, evalb(lines_of(gold), lines_of(test)))


@SEEDS
def test_trees_over_the_same_words_have_evalbs_figures(evalb: Evalb, seed: int) -> None:
    gold, parts = perturbed_pairs(seed, random_trees(seed), perturbed_trees.change_tag)
    test = [Tree("TOP", tuple(trees)) for trees in parts]
    ours = bracketing.score([tree for [tree] in gold], test)
    assert 30 < ours.f1 < 90 and ours.sentences == len(test)
    assert_equal_evalb(ours, evalb(lines_of(gold), list(map(str, test))))


@SEEDS
def test_unlabelled_trees_have_evalbs_figures(evalb: Evalb, seed: int) -> None:
    gold, test = perturbed_pairs(seed, random_trees(seed), perturbed_trees.change_tag)
    ours = bracketing.score_as_evalb(gold, test)
    evalbs = evalb(lines_of(gold), lines_of(test), changes="LABELED 0")
    assert ours.unlabelled.matched == evalbs["matched"]
    assert ours.unlabelled.f1 == pytest.approx(evalbs["f1"], abs=HALF_A_DIGIT)


@SEEDS
def test_brackets_without_labels_have_evalbs_figures(evalb: Evalb, seed: int) -> None:
    gold, test = perturbed_pairs(seed, random_trees(seed), perturbed_trees.change_tag)
    lines = [re.sub(r"\((X|SBAR) ", "(", line) for line in lines_of(test)]
    parsed = [
        list(treebank.parse([line], name="", needs_labels=False)) for line in lines
    ]
    ours = bracketing.score_as_evalb(gold, parsed)
    assert ours.by_label[""].test
    assert_equal_evalb(ours, evalb(lines_of(gold), lines))


def test_other_deleted_labels_have_evalbs_figures(evalb: Evalb) -> None:
    gold, test = perturbed_pairs(3, random_trees(3), perturbed_trees.change_anything)
    ours = bracketing.score_as_evalb(gold, test, parameters=bracketing.NK)
    # Its repair of quotes is not ours; COLLINS.prm, which it continues, has none.
    changes = "DELETE_LABEL S1\nDELETE_LABEL ?\nDELETE_LABEL !"
    assert_equal_evalb(ours, evalb(lines_of(gold), lines_of(test), changes=changes))


def test_evalbs_own_sample_has_its_published_figures(evalb: Evalb) -> None:
    """Its README has them, too: recall 87.76, precision 90.53, 5 errors, 2 skips."""
    texts = [
        (EVALB / "sample" / f"sample.{ending}").read_text().splitlines()
        for ending in ("gld", "tst")
    ]
    # Equal words are the one parameter that we have not.
    texts[1][18] = texts[1][18].replace("This", "this")
    gold, test = ([list(treebank.parse([line], name="")) for line in t] for t in texts)
    parameters = bracketing.Parameters(
        "sample",
        deleted_labels=bracketing.COLLINS.deleted_labels - {"."},
        equivalent_labels={"TT": "T"},
    )
    ours = bracketing.score_as_evalb(gold, test, parameters=parameters)
    sample = EVALB / "sample" / "sample.prm"
    assert_equal_evalb(ours, evalb(*texts, parameters=sample))
    assert (ours.sentences, ours.errors, ours.skips) == (17, 5, 2)
    assert ours.recall == pytest.approx(87.76, abs=HALF_A_DIGIT)
    assert ours.precision == pytest.approx(90.53, abs=HALF_A_DIGIT)


@pytest.mark.shared
@pytest.mark.skipif(not GUM.is_file(), reason=f"needs the trees of GUM, {GUM}")
def test_a_treebanks_trees_have_evalbs_figures(evalb: Evalb) -> None:
    trees = list(treebank.read(GUM))
    gold, test = perturbed_pairs(1, trees, perturbed_trees.change_anything)
    ours = bracketing.score_as_evalb(gold, test)
    assert ours.sentences > 1000 and ours.errors > 100
    assert_equal_evalb(ours, evalb(lines_of(gold), lines_of(test)))


class ListTree(list[Any]):
    """What supar's metric needs of the class that NLTK calls Tree."""

    def __init__(self, label: str, parts: Sequence[Any]) -> None:
        super().__init__(parts)
        self._label = label

    def label(self) -> str:
        return self._label


def list_tree(tree: Tree) -> ListTree:
    """Return a tree for supar, which leaves it to its user to cut labels."""
    if tree.word:
        return ListTree(tree.label, [tree.word])
    label = re.split("[-=]", tree.label)[0]
    return ListTree(label, list(map(list_tree, tree.children)))


@pytest.fixture
def supar(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Return a function that scores trees with the metric of supar."""
    if not SUPAR.is_dir():
        pytest.skip(f"supar's metric is not in {SUPAR}: make oracles")
    # What the file imports for other purposes.
    stand_ins: dict[str, dict[str, object]] = {
        "nltk": {"Tree": ListTree},
        "supar.utils.logging": {"get_logger": str, "progress_bar": iter},
        "supar.utils.tokenizer": {"Tokenizer": object},
        "supar.utils": {},
        "supar": {},
    }
    for name, values in stand_ins.items():
        module = types.ModuleType(name)
        vars(module).update(values)
        monkeypatch.setitem(sys.modules, name, module)
    metric, transform = (load(SUPAR / f"{n}.py") for n in ("metric", "transform"))

    def score(gold: Sequence[Tree], test: Sequence[Tree]) -> Any:
        deleted, equal = set(bracketing.COLLINS.deleted_labels), {"ADVP": "PRT"}
        golds, tests = (
            [transform.Tree.factorize(list_tree(t), deleted, equal) for t in trees]
            for trees in (gold, test)
        )
        return metric.SpanMetric()(tests, golds)

    return score


def load(path: pathlib.Path) -> Any:
    """Import a file alone, without the package that it belongs to."""
    spec = importlib.util.spec_from_file_location(f"oracle_{path.stem}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@SEEDS
def test_trees_over_the_same_words_have_supars_figures(
    supar: Callable[..., Any], seed: int
) -> None:
    gold, parts = perturbed_pairs(seed, random_trees(seed), perturbed_trees.change_tag)
    trees = [tree for [tree] in gold]
    test = [Tree("TOP", tuple(part)) for part in parts]
    ours, supars = bracketing.score(trees, test), supar(trees, test)
    assert (ours.counts.gold, ours.counts.test) == (supars.gold, supars.pred)
    assert (ours.counts.matched, ours.unlabelled.matched) == (supars.ltp, supars.utp)
    for value, share in (
        (ours.f1, supars.lf),
        (ours.unlabelled.f1, supars.uf),
        (ours.complete_match, supars.lcm),
    ):
        assert value == pytest.approx(100 * share, rel=1e-9)
