"""Formulas as MathML, which browsers draw without a script or a network."""

from typing import Any

from docutils import nodes
from latex2mathml import converter
from sphinx.application import Sphinx


def _visit(translator: Any, node: nodes.Element, *, display: str) -> None:
    translator.body.append(converter.convert(node.astext(), display=display))
    raise nodes.SkipNode


def _visit_inline(translator: Any, node: nodes.Element) -> None:
    _visit(translator, node, display="inline")


def _visit_block(translator: Any, node: nodes.Element) -> None:
    translator.body.append('<div class="math">')
    translator.body.append(converter.convert(node.astext(), display="block"))
    translator.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and choose it."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    app.config.html_math_renderer_name = "mathml"
    app.config["html_math_renderer"] = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
