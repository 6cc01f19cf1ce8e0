"""Directives of the pages on the paper: code beside formulas, and verdicts on claims.

`paper-code` shows a function with its lines, `lines` names one, `held` a test. All link
to pages of the source that the builder writes, at the very line. `paper-claims` is the
table of a section's claims, from docs/results/paper.json.
"""

import ast
import functools
import html
import json
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective, SphinxRole

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
# Where the pages of the source lie in the site.
SOURCE = "source"
# Of each verdict, the mark that stands before it.
MARKS = {
    "holds": "✓",
    "holds in part": "◐",
    "no clear difference": "≈",
    "does not hold": "✗",
    "not run": "–",
}


class Definition:
    """A function, method or class of a file, and its lines.

    Attributes:
        path: The file, from the repository's root.
        name: As in "MultiHeadAttention.__call__".
        first: Its first line, decorators included.
        last: Its last line.
        code: These lines without docstrings, not indented.
        numbers: The number of each of them.
    """

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        lines, tree = _parse(path)
        node = _find(tree.body, name.split("."))
        if node is None:
            raise ValueError(f"{path} has no {name}")
        decorators = [item.lineno for item in getattr(node, "decorator_list", [])]
        self.first = min([node.lineno, *decorators])
        self.last = node.end_lineno or node.lineno
        hidden = {number for span in _docstrings(node) for number in span}
        self.numbers = [n for n in range(self.first, self.last + 1) if n not in hidden]
        indent = len(lines[self.first - 1]) - len(lines[self.first - 1].lstrip())
        self.code = [lines[number - 1][indent:] for number in self.numbers]

    @property
    def lines(self) -> str:
        """The numbers of the first and the last line."""
        if self.first == self.last:
            return f"line {self.first}"
        return f"lines {self.first} to {self.last}"

    @property
    def anchor(self) -> str:
        """Where the page of the file has the first line."""
        return f"L-{self.first}"


@functools.cache
def _parse(path: str) -> tuple[list[str], ast.Module]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return text.splitlines(), ast.parse(text)


def _find(body: Sequence[ast.AST], names: Sequence[str]) -> Any:
    """Return the definition or the assignment of a dotted name."""
    for node in body:
        is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
        if is_definition and getattr(node, "name", "") == names[0]:
            rest = names[1:]
            return _find(getattr(node, "body", []), rest) if rest else node
        targets = getattr(node, "targets", None) or [getattr(node, "target", None)]
        if any(getattr(target, "id", "") == names[0] for target in targets):
            return node
    return None


def _docstrings(node: ast.AST) -> Iterator[range]:
    """Yield the lines of the docstrings within a definition."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            inner
        ):
            expression = inner.body[0]
            yield range(expression.lineno, (expression.end_lineno or 0) + 1)


def definition(target: str) -> Definition:
    """Return the definition that a target names.

    >>> definition("model.masks:causal_mask").path
    'vaswani_jax/model/masks.py'
    >>> definition("tests/model/test_masks.py::test_causal_mask").path
    Traceback (most recent call last):
        ...
    ValueError: tests/model/test_masks.py has no test_causal_mask
    """
    if "::" in target:
        path, _, name = target.partition("::")
        return Definition(path, name)
    module, _, name = target.partition(":")
    if not module.startswith("configs."):
        module = f"vaswani_jax.{module}"
    return Definition(f"{module.replace('.', '/')}.py", name)


class Code(SphinxDirective):
    """A function with the lines that compute, folded, and a link to its file.

    Several names may stand on a line; each has a box of its own.
    """

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        boxes: list[nodes.Node] = []
        for target in self.arguments[0].split():
            code = definition(target)
            _note(self.env, code.path)
            self.env.note_dependency(str(ROOT / code.path))
            start = (
                f'<details class="paper-code"><summary>'
                f"<code>{html.escape(code.name)}</code> "
                f'<a href="{_uri(self.env, code)}">{html.escape(code.path)}, '
                f"{code.lines}</a></summary>"
            )
            block = nodes.literal_block("\n".join(code.code), "\n".join(code.code))
            block["language"] = "python"
            boxes += [
                nodes.raw("", start, format="html"),
                block,
                nodes.raw("", "</details>", format="html"),
            ]
        return boxes


class Lines(SphinxRole):
    """A name of the code as a link to its lines: model.attention:attention_weights."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        code = definition(self.text)
        return self.link(code, nodes.literal(code.name, code.name))

    def link(
        self, code: Definition, text: nodes.Node
    ) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return a link to the lines of a definition."""
        _note(self.env, code.path)
        self.env.note_dependency(str(ROOT / code.path))
        reference = nodes.reference(
            "",
            "",
            text,
            refuri=_uri(self.env, code),
            reftitle=f"{code.path}, {code.lines}",
            internal=True,
        )
        return [reference], []


class Held(Lines):
    """A test as a link that says its claim: tests/model/test_masks.py::test_NAME."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        code = definition(self.text)
        words = code.name.removeprefix("test_").replace("_", " ")
        return self.link(code, nodes.Text(words))


class Claims(SphinxDirective):
    """The claims of sections, with verdicts and what they rest on."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        path = RESULTS / "paper.json"
        self.env.note_dependency(str(path))
        record = json.loads(path.read_text(encoding="utf-8"))
        sections = self.arguments[0].split()
        claims = [c for c in record["claims"] if c["section"] in sections]
        if not claims:
            raise self.error(f"no claim of {', '.join(sections)} in {path.name}")
        return self.parse_text_to_nodes("\n".join(claims_table(claims)))


class Verdicts(SphinxDirective):
    """How many claims have each verdict, and where the verdicts come from."""

    def run(self) -> list[nodes.Node]:
        path = RESULTS / "paper.json"
        self.env.note_dependency(str(path))
        record = json.loads(path.read_text(encoding="utf-8"))
        verdicts = [claim["verdict"] for claim in record["claims"]]
        counts = ", ".join(
            f"{mark} {verdict}: {verdicts.count(verdict)}"
            for verdict, mark in MARKS.items()
        )
        text = (
            f"Of {len(verdicts)} claims: {counts}. Made by `{record['command']}` on "
            f"{record['date'][:10]} at {record['commit']}, with jax {record['jax']}, "
            f"on {record['hardware']}."
        )
        return self.parse_text_to_nodes(text)


def claims_table(claims: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table of claims, in Markdown."""
    yield "| claim | verdict | why |"
    yield "| --- | --- | --- |"
    for claim in claims:
        mark = MARKS[claim["verdict"]]
        # The mark and a short verdict stay on one line.
        verdict = f"{mark}\N{NO-BREAK SPACE}{claim['verdict']}"
        verdict = verdict.replace("not run", "not\N{NO-BREAK SPACE}run")
        if claim["scale"]:
            verdict += ", small models"
        why = claim["because"]
        if any("table3_small" in run for run in claim["runs"]):
            why += " ([runs](/results/table3_small.md))"
        elif len(claim["runs"]) == 1:
            why += f" (run: `{claim['runs'][0]}`)"
        if claim["verdict"] == "not run" and claim["command"]:
            why += f" (`{claim['command']}`)"
        yield f"| {_cell(claim['text'])} | **{verdict}** | {_cell(why)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def _uri(env: Any, code: Definition) -> str:
    target = f"{SOURCE}/{code.path.removesuffix('.py')}"
    base = env.app.builder.get_relative_uri(env.docname, target)
    return f"{base}#{code.anchor}"


def _note(env: Any, path: str) -> None:
    if not hasattr(env, "paper_sources"):
        env.paper_sources = {}
    env.paper_sources.setdefault(env.docname, set()).add(path)


def _forget(app: Sphinx, env: Any, docname: str) -> None:
    getattr(env, "paper_sources", {}).pop(docname, None)


def _merge(app: Sphinx, env: Any, docnames: Any, other: Any) -> None:
    for docname, paths in getattr(other, "paper_sources", {}).items():
        for path in paths:
            env.paper_sources = getattr(env, "paper_sources", {})
            env.paper_sources.setdefault(docname, set()).add(path)


def _source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield a page for each file that is linked, with an anchor for each line."""
    sources = getattr(app.env, "paper_sources", {})
    for path in sorted({path for paths in sources.values() for path in paths}):
        text = (ROOT / path).read_text(encoding="utf-8")
        code = app.builder.highlighter.highlight_block(  # type: ignore[attr-defined]
            text,
            "python",
            linenos="inline",
            lineanchors="L",
            anchorlinenos=True,
        )
        code = re.sub(r"<a id=", '<a tabindex="-1" id=', code)
        body = f'<h1>{path}</h1><div class="paper-source">{code}</div>'
        context = {"title": path, "body": body, "parents": []}
        yield f"{SOURCE}/{path.removesuffix('.py')}", context, "page.html"


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the directives, the role, and the pages of the source."""
    app.add_directive("paper-code", Code)
    app.add_directive("paper-claims", Claims)
    app.add_directive("paper-verdicts", Verdicts)
    app.add_role("lines", Lines())
    app.add_role("held", Held())
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("html-collect-pages", _source_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
