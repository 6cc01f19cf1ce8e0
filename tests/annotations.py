"""Annotations hold in every call, or a test fails.

jaxtyping checks the modules that name the axes of arrays. All others have beartype
alone, whose wrapper binds no arguments and is about twice as fast.
"""

import pathlib
import re
import sys

import beartype.claw
import jaxtyping

PACKAGE = pathlib.Path(__file__).parents[1] / "vaswani_jax"


def with_axes() -> list[str]:
    """The modules of the package that import jaxtyping."""
    return [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in sorted(PACKAGE.rglob("*.py"))
        if re.search(r"^(from|import) jaxtyping", path.read_text(), re.MULTILINE)
    ]


def check() -> None:
    """Check every module of the package that is imported after this.

    But for one that is named on pytest's command line: pytest imports it by itself.
    """
    early = [name for name in sys.modules if name.split(".")[0] == PACKAGE.name]
    assert not early, f"not checked, because imported before: {early}"
    beartype.claw.beartype_package(PACKAGE.name)
    jaxtyping.install_import_hook(with_axes(), "beartype.beartype")
