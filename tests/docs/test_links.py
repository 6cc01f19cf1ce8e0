"""Files, tests and headings that the documentation names are there."""

import pathlib
import re

import pytest

import vaswani_jax

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for page in ROOT.glob("docs/**/*.md") if "_build" not in page.parts),
]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#[^)]*)?\)")
PATH = re.compile(r"`((?:tests|configs|launch|docs|vaswani_jax)/[\w./-]+)`")
# As the tables of sections do, without the package's name.
MODULE = re.compile(r"`((?:[a-z_]+/)+[a-z_0-9]+\.py)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: pathlib.Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [page.parent / name for name in LINK.findall(text) if name]
    paths = [ROOT / name for name in PATH.findall(text)]
    missing = [str(path) for path in [*links, *paths] if not path.exists()]
    missing += [
        name
        for name in MODULE.findall(text)
        if not (ROOT / name).exists() and not (ROOT / "vaswani_jax" / name).exists()
    ]
    assert not missing


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def test_this_version_is_the_one_to_cite() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version = {{{vaswani_jax.__version__}}}," in readme
    assert f"\nversion: {vaswani_jax.__version__}\n" in citation


def test_the_readme_counts_the_proofs() -> None:
    page = (ROOT / "docs" / "paper" / "proofs.md").read_text(encoding="utf-8")
    count = len(re.findall(r"^\| .*`tests/", page, re.MULTILINE))
    assert f"{count} parts are" in (ROOT / "README.md").read_text(encoding="utf-8")
