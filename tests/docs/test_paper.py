"""The pages on the paper: each formula, number and claim has what is beside it."""

import ast
import functools
import importlib.util
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from vaswani_jax.cli import commands
from vaswani_jax.core import config, parsing, presets
from vaswani_jax.paper import claims, scored_runs, table1
from vaswani_jax.paper import presets as paper_presets
from vaswani_jax.paper.claim import Claim
from vaswani_jax.paper.table1 import Costs

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "paper").glob("*.md"))
HELD = re.compile(r"\{held\}`([^`]*)`")
CODE = re.compile(r"^```\{paper-code\} (.*)$|\{lines\}`([^`]*)`", re.M)
FORMULA = re.compile(r"^\$\$.*?\$\$$", re.M | re.S)
ROW = re.compile(
    r"^\| (?P<name>[^|]*) \| (?P<number>[^|]*) \| (?P<preset>[^|]*) "
    r"\| (?P<setting>[^|]*) \| \{held\}`(?P<test>[^`]*)` \|$",
    re.M,
)
# What the paper says, by section: its formulas and numbers, typed again.
FORMULAS = [
    r"\mathrm{LayerNorm}(x+\mathrm{Sublayer}(x))",
    r"\mathrm{softmax}\left(\frac{QK^T}{\sqrt{d_k}}\right)V",
    r"\mathrm{Concat}(\mathrm{head}_1,\ldots,\mathrm{head}_h)W^O",
    r"\mathrm{Attention}(QW_i^Q,KW_i^K,VW_i^V)",
    r"\max(0,xW_1+b_1)W_2+b_2",
    r"\sqrt{d_{\mathrm{model}}}",
    r"\sin\left(\frac{pos}{10000^{2i/d_{\mathrm{model}}}}\right)",
    r"\cos\left(\frac{pos}{10000^{2i/d_{\mathrm{model}}}}\right)",
    r"\min(step\_num^{-0.5},\;step\_num\cdot warmup\_steps^{-1.5})",
    r"\left(\frac{5+|Y|}{6}\right)^\alpha",
]
NUMBERS = """
model: N 6, d_model 512, h 8, d_k 64, d_v 64, d_ff 2048
training: vocabularies 37000 32000, tokens 25000, steps 100000 300000, seconds 0.4 1.0,
 time 12 3.5, GPUs 8, Adam 0.9 0.98 1e-9, warm-up 4000, dropout 0.1 0.3, smoothing 0.1
results: averages 5 20, minutes 10, beam 4, alpha 0.6, longest 50, GPUs 2.8 3.7 6.0 9.5,
 parser 4 1024, vocabularies 16000 32000, beam 21, alpha 0.3, longest 300
"""


class Number(NamedTuple):
    """A row of a table of numbers."""

    page: pathlib.Path
    name: str
    number: str
    preset: str
    setting: str
    test: str


def read(page: pathlib.Path) -> str:
    return page.read_text(encoding="utf-8")


def rows() -> list[Number]:
    return [
        Number(page, **match.groupdict())
        for page in PAGES
        for match in ROW.finditer(read(page))
    ]


def whole_text() -> str:
    return "\n".join(map(read, PAGES))


@functools.cache
def definitions(path: str) -> dict[str, ast.AST]:
    """Return what a file defines, by dotted name."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))

    def walk(body: list[Any], prefix: str) -> Iterator[tuple[str, ast.AST]]:
        for node in body:
            for target in (node, *getattr(node, "targets", [])):
                name = getattr(target, "name", "") or getattr(target, "id", "")
                if name:
                    yield prefix + name, node
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield prefix + node.target.id, node
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{prefix}{node.name}.")

    return dict(walk(tree.body, ""))


def named_tests() -> list[str]:
    return sorted(set(HELD.findall(whole_text())))


@pytest.mark.parametrize("name", named_tests())
def test_a_test_that_a_page_names_is_one_that_pytest_collects(name: str) -> None:
    path, _, function = name.partition("::")
    assert pathlib.Path(path).name.startswith("test_") and path.startswith("tests/")
    assert function.startswith("test_") and function in definitions(path)
    decorators = ast.unparse(ast.Module(definitions(path)[function].decorator_list, []))
    for absent in ("mark.skip(", "mark.xfail", "mark.slow", "mark.gpu"):
        assert absent not in decorators


def test_every_function_that_a_page_shows_is_there() -> None:
    names = [name for pair in CODE.findall(whole_text()) for name in pair if name]
    assert len(names) > 15
    for target in " ".join(names).split():
        module, _, name = target.partition(":")
        package = "" if module.startswith("configs.") else "vaswani_jax/"
        path = f"{package}{module.replace('.', '/')}.py"
        assert name in definitions(path), target


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_of_the_paper_stands_before_the_code_that_computes_it(
    formula: str,
) -> None:
    [page] = [read(page) for page in PAGES if formula in read(page)]
    section = page[page.index(formula) :].split("\n## ")[0]
    assert "```{paper-code}" in section
    assert "```{code-cell}" in section, "without an example"
    assert "{held}" in section, "without a test"


def test_every_formula_is_one_of_the_papers_or_the_smoothing_it_cites() -> None:
    formulas = FORMULA.findall(whole_text())
    others = [text for text in formulas if not any(f in text for f in FORMULAS)]
    assert len(others) == 1 and r"\epsilon_{ls}" in others[0]


def test_the_pages_have_every_number_of_the_paper() -> None:
    for line in NUMBERS.replace("\n ", " ").strip().splitlines():
        page, _, text = line.partition(": ")
        expected = re.findall(r"(?<= )[\d.]+(?:e-\d+)?(?=[ ,]|$)", text)
        found = [row.number for row in rows() if row.page.stem == page]
        assert set(expected) == set(found), page


@pytest.mark.parametrize(
    "row", rows(), ids=lambda row: f"{row.page.stem}: {row.name} {row.number}"
)
def test_a_number_is_the_settings_and_in_the_file_of_its_test(row: Number) -> None:
    if row.setting:
        settings = parsing.parse(presets.load(*presets.find(row.preset)))
        values = config.flatten(config.to_dict(settings))
        assert values[row.setting.strip("`")] == float(row.number)
    path = ROOT / row.test.partition("::")[0]
    literals = {
        float(node.value)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    }
    texts = path.read_text(encoding="utf-8")
    number = float(row.number)
    # Minutes and days of the paper are seconds and hours of a test.
    assert {number, number * 60, number * 24} & literals or row.number in texts


@functools.cache
def record() -> dict[str, Any]:
    path = ROOT / "docs" / "results" / "paper.json"
    committed = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(committed, dict)
    return committed


def judged(monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    """Return what the code makes of the committed runs and the recorded times."""
    monkeypatch.chdir(ROOT)
    evidence = claims.Evidence(
        systems=paper_presets.systems(),
        rows=paper_presets.rows("table3"),
        small_rows=paper_presets.rows("table3_small"),
        runs=scored_runs.read(pathlib.Path("docs/results")).runs,
        costs=Costs(**record()["table1"]),
    )
    return claims.judge(evidence)


def test_the_recorded_verdicts_are_those_of_the_recorded_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded = record()["claims"]
    computed = claims.to_json(judged(monkeypatch))
    assert [claim["id"] for claim in recorded] == [claim["id"] for claim in computed]
    for old, new in zip(recorded, computed, strict=True):
        if old["section"] == "figures" and old["runs"]:
            # The run's parameters are not part of the repository.
            assert old["figures"] and old["runs"][0] in old["command"], old["id"]
            continue
        figures = pytest.approx(new.pop("figures"), rel=1e-4, abs=1e-4)
        assert old["figures"] == figures, old["id"]
        assert {key: value for key, value in old.items() if key != "figures"} == new


def test_the_record_says_where_it_is_from() -> None:
    command = record()["command"]
    assert command.startswith("vaswani report --runs=docs/results,runs ")
    assert re.fullmatch(r"[0-9a-f]{12}", record()["commit"]), "of uncommitted code"
    assert re.match(r"2\d{3}-\d\d-\d\dT", record()["date"])
    costs = record()["table1"]
    assert set(costs["seconds"]) == {layer.name for layer in table1.LAYER_TYPES}
    for name, figure in (("lengths", "lengths"), ("sentences", "rows")):
        values = costs[figure] if name == "lengths" else [costs[figure]]
        assert f"--{name}={','.join(map(str, values))}" in command


def test_every_claim_stands_on_a_page_once() -> None:
    shown = re.findall(r"^```\{paper-claims\} (.*)$", whole_text(), re.M)
    sections = [section for line in shown for section in line.split()]
    assert sorted(sections) == sorted(
        {claim["section"] for claim in record()["claims"]}
    )


def test_every_command_of_the_pages_is_one() -> None:
    named = re.findall(r"`vaswani ([\w-]+)(?: ([a-z_0-9]+))?", whole_text())
    assert len(named) > 10
    for command, preset in named:
        assert command in commands.COMMANDS, command
        assert command != "train" or preset in presets.names(), preset


def test_table_1_of_the_page_is_that_of_the_report() -> None:
    page = read(ROOT / "docs" / "paper" / "self_attention.md")
    plain = page.replace(r" \cdot ", " ").replace("$", "").replace("\\", "")
    for layer in table1.LAYER_TYPES:
        cells = (layer.name, layer.complexity, layer.sequential, layer.path)
        assert f"| {' | '.join(cells)} |" in plain


def test_the_run_of_a_figure_stands_beside_its_verdict() -> None:
    pytest.importorskip("sphinx", reason="sphinx is not installed: .[docs]")
    specification = importlib.util.spec_from_file_location(
        "paper_directives", ROOT / "docs" / "_extensions" / "paper.py"
    )
    assert specification and specification.loader
    paper = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(paper)
    figures = [claim for claim in record()["claims"] if claim["section"] == "figures"]
    rows = list(paper.claims_table(figures))[2:]
    for claim, row in zip(figures, rows, strict=True):
        assert all(f"(run: `{run}`)" in row for run in claim["runs"])


def test_the_command_of_the_shown_page_and_its_sentences_stand_beside_it() -> None:
    page = json.loads((ROOT / "docs/results/page.json").read_text(encoding="utf-8"))
    text = read(ROOT / "docs" / "paper" / "conclusion.md")
    assert f"$ {page['command']}\n" in text
    sentences = " ".join(f"'{sentence['text']}'" for sentence in page["sentences"])
    joined = text.replace("\\\n    ", "")
    assert f"$ printf '%s\\n' {sentences} > lines.en\n" in joined
