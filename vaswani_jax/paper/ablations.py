"""Table 3 at a smaller scale: do its rows move as the paper's, and does what it shows?

Sizes, text and budget are others than the paper's, so that figures cannot be compared,
but the directions in which they differ from the base model's.
"""

from collections.abc import Mapping, Sequence

from vaswani_jax.core import config
from vaswani_jax.model import cost
from vaswani_jax.paper import printed as printed_
from vaswani_jax.paper import runs as runs_

# A printed difference of up to this is none, and so is ours where the base model was
# run with one seed: chosen, not measured. Perplexity's are shares of the base model's.
CHOSEN = {"bleu": 0.5, "perplexity": 0.01}


def table(rows: Mapping[str, config.Config], runs: Sequence[runs_.Found]) -> str:
    """Every row beside the base model, ours and the paper's; then the conclusions."""
    found = runs_.rows(runs, rows)
    ours = {
        row: printed_.Variation(one.perplexity, one.bleu, None)
        for row, one in found.items()
        if one and not one.flaw
    }
    by_seed = runs_.by_seed(runs, rows["base"], split="valid")
    noise = bounds(by_seed)
    lines = []
    for row, settings in rows.items():
        one = found[row]
        count = cost.total(settings.model, vocab_size=settings.data.vocab_size)
        cells: list[str | None] = [row, f"{count / 1e6:.2f} M"]
        for figure in ("perplexity", "bleu"):
            cells += _moves(ours, row, figure=figure, noise=noise[figure])
        lines.append([*cells, one and one.where])
    head = ["row", "parameters"]
    head += ["perplexity", "change", "paper's", "moves"]
    head += ["BLEU", "change", "paper's", "moves", "from"]
    seeds = sorted({int(one.settings["seed"]) for one in found.values() if one})
    training = rows["base"].training
    return (
        f"All rows: {training.num_steps:,} updates, one seed "
        f"({', '.join(map(str, seeds)) or 'not run'}). {_seeds(by_seed, noise)} A "
        f"change of the paper's counts as none up to {CHOSEN['bleu']} BLEU or "
        f"{CHOSEN['perplexity']:.0%} of the base model's perplexity: chosen, for of "
        "its seeds nothing is known.\n\n"
        f"{runs_.markdown(head, lines)}\n\n"
        "What the paper concludes from its table, and the differences of the rows it "
        f"rests on (better minus worse):\n\n{_conclusions(ours, noise)}"
    )


def bounds(by_seed: Mapping[int, runs_.Found]) -> dict[str, float]:
    """Up to which our changes count as none: the largest between two seeds of base.

    By figure, perplexity's as a share of the base model's; `CHOSEN` for one seed.
    """
    if len(by_seed) < 2:
        return dict(CHOSEN)
    bleu = [one.bleu for one in by_seed.values()]
    perplexity = [one.perplexity for one in by_seed.values()]
    return {
        "bleu": max(bleu) - min(bleu),
        "perplexity": (max(perplexity) - min(perplexity)) / min(perplexity),
    }


def _seeds(by_seed: Mapping[int, runs_.Found], noise: Mapping[str, float]) -> str:
    """How far the base model is from itself with other seeds, and what follows."""
    bound = f"{noise['bleu']:.2f} BLEU or {noise['perplexity']:.1%}"
    if len(by_seed) < 2:
        return (
            "The base model was run with one seed; a change of ours counts as none up "
            f"to {bound} of its perplexity: chosen, not measured."
        )
    told = ", ".join(
        f"{one.bleu:.2f} and {one.perplexity:.2f} (seed {seed})"
        for seed, one in by_seed.items()
    )
    return (
        f"BLEU and perplexity of the base model by its seed: {told}. A change of ours "
        f"counts as none up to the largest between two of them, {bound} of perplexity."
    )


def moves(own: float, printed: float, *, noise: float, bound: float) -> str:
    """Whether a change has the direction of the printed one.

    Args:
        own: Ours.
        printed: The paper's.
        noise: Up to which ours is none.
        bound: Up to which the paper's is none.

    >>> [moves(own, -0.9, noise=1.5, bound=0.5) for own in (-1.6, -1.4, 1.6)]
    ['as printed', 'ours does not', 'the other way']
    >>> [moves(own, 0.1, noise=1.5, bound=0.5) for own in (-1.4, -1.6)]
    ['neither does', 'only ours does']
    """
    if abs(own) <= noise + runs_.ROUNDING:
        return "neither does" if abs(printed) <= bound else "ours does not"
    if abs(printed) <= bound:
        return "only ours does"
    return "as printed" if own * printed > 0 else "the other way"


def holds(difference: float, *, noise: float, same: bool) -> str:
    """Whether the better row is better, or neither of two that are the same.

    >>> [holds(better, noise=0.5, same=False) for better in (0.6, 0.4, -0.6)]
    ['holds', 'no clear difference', 'does not hold']
    >>> [holds(better, noise=0.5, same=True) for better in (0.4, -0.6)]
    ['holds: no clear difference', 'does not hold']
    """
    if abs(difference) <= noise + runs_.ROUNDING:
        return f"{'holds: ' if same else ''}no clear difference"
    return "holds" if difference > 0 and not same else "does not hold"


def _moves(
    ours: Mapping[str, printed_.Variation], row: str, *, figure: str, noise: float
) -> list[str | None]:
    """A figure, its change from the base model, the paper's change, and the verdict."""
    printed = _change(printed_.TABLE3, worse="base", better=row, figure=figure)
    digits = ".1f" if figure == "bleu" else ".2f"
    own = f"{getattr(ours[row], figure):.2f}" if row in ours else None
    if row == "base":
        return [own, None, None, None]
    if row not in ours or "base" not in ours:
        return [own, None, f"{printed:+{digits}}", "not run"]
    change = _change(ours, worse="base", better=row, figure=figure)
    told = moves(
        change / _unit(ours, figure),
        printed / _unit(printed_.TABLE3, figure),
        noise=noise,
        bound=CHOSEN[figure],
    )
    return [own, f"{change:+.2f}", f"{printed:+{digits}}", told]


def _conclusions(
    ours: Mapping[str, printed_.Variation], noise: Mapping[str, float]
) -> str:
    lines = []
    for conclusion in printed_.CONCLUSIONS:
        for worse, better in conclusion.pairs:
            for figure in conclusion.figures:
                lines.append(
                    [
                        f"{conclusion.text} (section {conclusion.section})",
                        f"{better} against {worse}",
                        "BLEU" if figure == "bleu" else figure,
                        *_held_against(
                            ours, conclusion, worse, better, figure, noise[figure]
                        ),
                    ]
                )
    head = ["conclusion", "rows", "of", "paper's", "ours", "at this scale it"]
    return runs_.markdown(head, lines)


def _held_against(
    ours: Mapping[str, printed_.Variation],
    conclusion: printed_.Conclusion,
    worse: str,
    better: str,
    figure: str,
    noise: float,
) -> list[str | None]:
    """The paper's difference, ours, and whether the conclusion holds by ours."""
    printed = _change(printed_.TABLE3, worse=worse, better=better, figure=figure)
    if not {worse, better, "base"} <= ours.keys():
        return [f"{printed:+.2f}", None, "not run"]
    change = _change(ours, worse=worse, better=better, figure=figure)
    # A lower perplexity is the better one.
    sign = 1 if figure == "bleu" else -1
    told = holds(
        sign * change / _unit(ours, figure),
        noise=noise,
        same=conclusion.same,
    )
    unclear = abs(printed) / _unit(printed_.TABLE3, figure) <= CHOSEN[figure]
    if unclear and not conclusion.same:
        told += "; the paper's is within the bound"
    return [f"{printed:+.2f}", f"{change:+.2f}", told]


def _change(
    figures: Mapping[str, printed_.Variation], *, worse: str, better: str, figure: str
) -> float:
    return float(getattr(figures[better], figure) - getattr(figures[worse], figure))


def _unit(figures: Mapping[str, printed_.Variation], figure: str) -> float:
    """What a change is measured in: perplexities of other text have another size."""
    return 1.0 if figure == "bleu" else figures["base"].perplexity
