"""Section 6.1: what other engines need, and how near their translations are to ours."""

import importlib.util
from collections.abc import Mapping, Sequence

from vaswani_jax.core import config, environment
from vaswani_jax.inference import evaluators

# What each format needs that the package does not.
NEEDS = {
    "ctranslate2": ["ctranslate2"],
    "marian": ["safetensors", "torch", "transformers"],
    "stablehlo": ["flatbuffers"],
}


def require(form: str) -> None:
    """Refuse a format whose packages are not there, before any work.

    Raises:
        ImportError: Names them and how to install them.
    """
    missing = [name for name in NEEDS[form] if importlib.util.find_spec(name) is None]
    if missing:
        raise ImportError(
            f"--format={form} needs {', '.join(missing)}: "
            f"{environment.how_to_install('export')}"
        )


def table(
    data: config.DataConfig,
    references: Sequence[str],
    ours: Mapping[str, Sequence[str]],
    theirs: Mapping[str, Sequence[str]],
) -> str:
    """A line an engine: BLEU, and in how many lines it agrees.

    Args:
        data: The form of the text, hence the BLEU.
        references: A line each.
        ours: Our outputs by the name of the search.
        theirs: Another engine's by a name that begins with that of the same search;
            one that begins with no such name is compared with the first of ours.
    """

    def bleu(outputs: Sequence[str]) -> str:
        found = evaluators.score(data, outputs, references)[0]
        return f"{found.name} {found.value:.2f}"

    lines = [f"vaswani_jax, {name}: {bleu(own)}" for name, own in ours.items()]
    for name, outputs in theirs.items():
        same = next((key for key in ours if name.startswith(key)), next(iter(ours)))
        pairs = zip(outputs, ours[same], strict=True)
        equal = sum(a == b for a, b in pairs)
        lines.append(
            f"exported, {name}: {bleu(outputs)}; {equal:,} of {len(outputs):,} lines "
            f"({equal / len(outputs):.1%}) as vaswani_jax, {same}"
        )
    return "\n".join(lines)
