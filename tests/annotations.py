"""Annotations hold in every call, or a test fails.

jaxtyping checks the modules that name the axes of arrays, beartype alone all others: a
call costs it a tenth.
"""

import pathlib
import re

import beartype
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
    """From here on; modules of the package that are imported already are as before."""
    ints_are_floats = beartype.BeartypeConf(is_pep484_tower=True)
    beartype.claw.beartype_package(PACKAGE.name, conf=ints_are_floats)
    jaxtyping.install_import_hook(with_axes(), "beartype.beartype")
