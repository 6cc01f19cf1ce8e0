"""Table 3 at a smaller scale: whether rows move as printed, and conclusions hold.

Sizes, text and budget differ from the paper's, so that only directions can be
compared: those in which rows differ from the base model.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from vaswani_jax.core import config
from vaswani_jax.model import cost
from vaswani_jax.paper import markdown, printed, scored_runs
from vaswani_jax.paper.printed import Conclusion, Variation
from vaswani_jax.paper.scored_runs import ScoredRun

# A printed difference of up to this counts as none, and so does ours where the base
# model was run with one seed: chosen, not measured. Perplexity's are shares of the
# base model's.
CHOSEN_NOISE = {"bleu": 0.5, "perplexity": 0.01}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Two rows that a conclusion compares by one figure.

    Attributes:
        worse: The row that the paper finds the worse one.
        better: The other row.
        figure: "bleu" or "perplexity".
        printed_change: The paper's figure of the better row minus the worse one's.
        change: The same of ours; None if one of the rows was not run.
        verdict: Whether the conclusion holds by our rows.
    """

    worse: str
    better: str
    figure: str
    printed_change: float
    change: float | None
    verdict: str


def format_table(rows: Mapping[str, config.Config], runs: Sequence[ScoredRun]) -> str:
    """Return every row beside the base model, ours and the paper's, and conclusions."""
    run_by_row = scored_runs.find_rows(runs, rows)
    measurements = variations(run_by_row)
    seeds = scored_runs.find_seeds(runs, rows["base"], split="valid")
    noise = measure_noise(seeds, base=run_by_row["base"])
    lines = []
    for row, settings in rows.items():
        run = run_by_row[row]
        count = cost.count_parameters(
            settings.model, vocab_size=settings.data.planned_vocab_size
        )
        cells: list[str | None] = [row, f"{count / 1e6:.2f} M"]
        for figure in ("perplexity", "bleu"):
            cells += _row_cells(measurements, row, figure=figure, noise=noise[figure])
        lines.append([*cells, run and run.source])
    head = ["row", "parameters"]
    head += ["perplexity", "change", "paper's", "moves"]
    head += ["BLEU", "change", "paper's", "moves", "from"]
    row_seeds = sorted(
        {int(run.settings["seed"]) for run in run_by_row.values() if run}
    )
    return (
        f"All rows: {rows['base'].training.num_steps:,} updates, one seed "
        f"({', '.join(map(str, row_seeds)) or 'not run'}). "
        f"{_format_noise(seeds, noise)} A change of the paper's counts if it exceeds "
        f"{CHOSEN_NOISE['bleu']} BLEU or {CHOSEN_NOISE['perplexity']:.0%} of the base "
        "model's perplexity: bounds that we chose, since the paper's seeds are "
        "unknown.\n\n"
        f"{markdown.table(head, lines)}\n\n"
        "What the paper concludes from its table, and the differences of the rows it "
        f"rests on (better minus worse):\n\n{_format_conclusions(measurements, noise)}"
    )


def variations(run_by_row: Mapping[str, ScoredRun | None]) -> dict[str, Variation]:
    """Return perplexity and BLEU of the rows whose runs are complete."""
    return {
        row: Variation(run.perplexity, run.score, None)
        for row, run in run_by_row.items()
        if run and not run.flaw
    }


def measure_noise(
    seeds: Mapping[int, ScoredRun], *, base: ScoredRun | None
) -> dict[str, float]:
    """Return the largest difference between two seeds of the base model.

    A change of ours up to it counts as none. `CHOSEN_NOISE` for a single seed.

    Args:
        seeds: The runs of the base model, by their seeds.
        base: The run of the base model's row; perplexity's difference is a share of its
            perplexity, as changes are.
    """
    if len(seeds) < 2 or base is None:
        return dict(CHOSEN_NOISE)
    bleu = [run.score for run in seeds.values()]
    perplexity = [run.perplexity for run in seeds.values()]
    return {
        "bleu": max(bleu) - min(bleu),
        "perplexity": (max(perplexity) - min(perplexity)) / base.perplexity,
    }


def _format_noise(seeds: Mapping[int, ScoredRun], noise: Mapping[str, float]) -> str:
    bound = f"{noise['bleu']:.2f} BLEU or {noise['perplexity']:.1%}"
    if len(seeds) < 2:
        return (
            "The base model was run with one seed; a change of ours counts if it "
            f"exceeds {bound} of its perplexity, bounds that we chose."
        )
    figures = ", ".join(
        f"{run.score:.2f} and {run.perplexity:.2f} (seed {seed})"
        for seed, run in seeds.items()
    )
    return (
        f"BLEU and perplexity of the base model by its seed: {figures}. A change of "
        "ours counts if it is larger than the largest difference between two seeds: "
        f"{bound} of perplexity."
    )


def direction_verdict(
    change: float, printed_change: float, *, noise: float, printed_noise: float
) -> str:
    """Return whether a change has the direction of the printed one.

    Args:
        change: Ours.
        printed_change: The paper's.
        noise: Up to this, our change counts as none.
        printed_noise: Up to this, the paper's counts as none.

    >>> def verdict(change, printed_change):
    ...     noise = {"noise": 1.0, "printed_noise": 0.5}
    ...     return direction_verdict(change, printed_change, **noise)
    >>> [verdict(change, -0.9) for change in (-1.1, -0.9, 1.1)]
    ['as printed', 'ours does not', 'the other way']
    >>> [verdict(change, 0.1) for change in (-0.9, -1.1)]
    ['neither does', 'only ours does']
    """
    if abs(change) <= noise + markdown.ROUNDING:
        return (
            "neither does" if abs(printed_change) <= printed_noise else "ours does not"
        )
    if abs(printed_change) <= printed_noise:
        return "only ours does"
    return "as printed" if change * printed_change > 0 else "the other way"


def conclusion_verdict(difference: float, *, noise: float, same: bool) -> str:
    """Return whether the better row is better, or neither of two that are the same.

    >>> [conclusion_verdict(d, noise=0.5, same=False) for d in (0.6, 0.4, -0.6)]
    ['holds', 'no clear difference', 'does not hold']
    >>> [conclusion_verdict(d, noise=0.5, same=True) for d in (0.4, -0.6)]
    ['holds: no clear difference', 'does not hold']
    """
    if abs(difference) <= noise + markdown.ROUNDING:
        return f"{'holds: ' if same else ''}no clear difference"
    return "holds" if difference > 0 and not same else "does not hold"


def _row_cells(
    measured: Mapping[str, Variation], row: str, *, figure: str, noise: float
) -> list[str | None]:
    """Return a figure, its change from the base model, the paper's, and the verdict."""
    digits = ".1f" if figure == "bleu" else ".2f"
    cell = f"{getattr(measured[row], figure):.2f}" if row in measured else None
    if row == "base":
        return [cell, None, None, None]
    pair = {"worse": "base", "better": row, "figure": figure}
    printed_change = _difference(printed.TABLE3, **pair)
    if row not in measured or "base" not in measured:
        return [cell, None, f"{printed_change:+{digits}}", "not run"]
    change = _difference(measured, **pair)
    verdict = direction_verdict(
        change / _unit(measured, figure),
        printed_change / _unit(printed.TABLE3, figure),
        noise=noise,
        printed_noise=CHOSEN_NOISE[figure],
    )
    return [cell, f"{change:+.2f}", f"{printed_change:+{digits}}", verdict]


def compare(
    conclusion: Conclusion,
    measured: Mapping[str, Variation],
    noise: Mapping[str, float],
) -> list[Comparison]:
    """Return what each pair of rows of a conclusion says of it, by each figure.

    Args:
        conclusion: The paper's.
        measured: Our rows.
        noise: By figure, up to which a change of ours counts as none.
    """
    comparisons = []
    for worse, better in conclusion.pairs:
        for figure in conclusion.figures:
            pair = {"worse": worse, "better": better, "figure": figure}
            change, verdict = _judge_pair(
                measured, pair, noise=noise[figure], same=conclusion.same
            )
            comparisons.append(
                Comparison(
                    **pair,
                    printed_change=_difference(printed.TABLE3, **pair),
                    change=change,
                    verdict=verdict,
                )
            )
    return comparisons


def _format_conclusions(
    measured: Mapping[str, Variation], noise: Mapping[str, float]
) -> str:
    lines = [
        [
            f"{conclusion.text} (section {conclusion.section})",
            f"{comparison.better} against {comparison.worse}",
            "BLEU" if comparison.figure == "bleu" else comparison.figure,
            f"{comparison.printed_change:+.2f}",
            None if comparison.change is None else f"{comparison.change:+.2f}",
            comparison.verdict,
        ]
        for conclusion in printed.CONCLUSIONS
        for comparison in compare(conclusion, measured, noise)
    ]
    head = ["conclusion", "rows", "of", "paper's", "ours", "at this scale it"]
    return markdown.table(head, lines)


def _judge_pair(
    measured: Mapping[str, Variation],
    pair: Mapping[str, str],
    *,
    noise: float,
    same: bool,
) -> tuple[float | None, str]:
    """Return our difference of two rows, and whether the conclusion holds by it."""
    if not {pair["worse"], pair["better"], "base"} <= measured.keys():
        return None, "not run"
    figure = pair["figure"]
    change = _difference(measured, **pair)
    # A lower perplexity is the better one.
    sign = 1 if figure == "bleu" else -1
    verdict = conclusion_verdict(
        sign * change / _unit(measured, figure), noise=noise, same=same
    )
    printed_change = abs(_difference(printed.TABLE3, **pair))
    is_unclear = printed_change / _unit(printed.TABLE3, figure) <= CHOSEN_NOISE[figure]
    if is_unclear and not same:
        verdict += "; the paper's is within the bound"
    return change, verdict


def _difference(
    rows: Mapping[str, Variation], *, worse: str, better: str, figure: str
) -> float:
    return float(getattr(rows[better], figure) - getattr(rows[worse], figure))


def _unit(rows: Mapping[str, Variation], figure: str) -> float:
    """Return what a change is measured in: perplexity depends on the text."""
    return 1.0 if figure == "bleu" else rows["base"].perplexity
