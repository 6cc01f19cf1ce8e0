"""Format a comparison of systems as text."""

from vaswani_jax.core import tables
from vaswani_jax.evaluation import metrics, significance
from vaswani_jax.evaluation.comparison import SystemComparison
from vaswani_jax.evaluation.line_differences import LineDifference, PairOfSystems
from vaswani_jax.evaluation.line_tables import Table

TEST_NAMES = {
    significance.RANDOMIZATION: (
        "approximate randomisation{seeds}, {draws:,} exchanges; 95% intervals of "
        "differences from {resamples:,} resamples"
    ),
    significance.BOOTSTRAP: "sacreBLEU's paired bootstrap, {draws:,} resamples",
}


def format_comparison(comparison: SystemComparison) -> str:
    """Return a comparison as lines of text."""
    letters = comparison.letters
    sections = [
        format_test(comparison),
        *(format_table(table, letters) for table in comparison.tables),
        *(_format_pair(pair, letters) for pair in comparison.pairs),
    ]
    return "\n\n".join(sections)


def format_test(comparison: SystemComparison) -> str:
    """Return the systems of a comparison, their scores, and the test of each pair."""
    letters = comparison.letters
    width = max(len(name) for name, _ in comparison.systems)
    sections = [
        "\n".join(
            [
                f"{comparison.text}: {comparison.num_lines:,} lines, references sha256 "
                f"{comparison.references}",
                *(
                    f"{letter}  {name:<{width}}  {origin}".rstrip()
                    for letter, (name, origin) in zip(
                        letters, comparison.systems, strict=True
                    )
                ),
            ]
        ),
        *(_format_scores(scores, letters) for scores in comparison.scores),
        "\n".join([describe_test(comparison), *describe_seeds(comparison)]),
    ]
    return "\n\n".join(sections)


def describe_test(comparison: SystemComparison) -> str:
    """Return the test behind the verdicts, in words."""
    num_pairs = len(comparison.pairs)
    test = TEST_NAMES[comparison.test].format(
        draws=comparison.draws,
        resamples=metrics.RESAMPLES,
        seeds=" over all seeds" * comparison.has_seeds,
    )
    correction = f", corrected by Holm's method for {num_pairs} pairs of systems"
    return (
        f"{test}, seed {comparison.seed}; systems are different if p"
        f"{correction + ',' if num_pairs > 1 else ''} is below {significance.LEVEL}"
    )


def describe_seeds(comparison: SystemComparison) -> list[str]:
    """Return what a reader must know of systems of several seeds; none without them."""
    if not comparison.has_seeds:
        return []
    notes = [
        "scores and tables show the mean over a system's seeds; a line shows the mean "
        "chrF2 and the nearest output"
    ]
    single = [
        letter
        for letter, count in zip(comparison.letters, comparison.num_seeds, strict=True)
        if count == 1
    ]
    if single:
        verb = "have" if len(single) > 1 else "has"
        notes.append(
            f"{' and '.join(single)} {verb} one seed: no test can say how another "
            "would score"
        )
    return notes


def describe_difference(difference: significance.Difference) -> str:
    """Return the interval of a difference; "" if it has none."""
    if difference.interval is None:
        return ""
    low, high = difference.interval
    return f"[{low:+.2f}, {high:+.2f}]"


def describe_verdict(
    scores: significance.MetricComparison,
    difference: significance.Difference,
    letters: str,
) -> str:
    """Return the verdict, which system is better, and whether its every seed is."""
    better = scores.better(difference)
    if better is None:
        return difference.verdict
    overlap = ", but seeds overlap" if scores.seeds_overlap(difference) else ""
    return f"{difference.verdict}: {letters[better]} is better{overlap}"


def format_p_value(value: float) -> str:
    """Return a p-value as text.

    >>> format_p_value(1.0), format_p_value(0.0312), format_p_value(0.0001)
    ('1.000', '0.031', '0.0001')
    """
    return f"{value:.3f}" if value >= 0.0005 else f"{value:.4f}"


def _format_scores(scores: significance.MetricComparison, letters: str) -> str:
    lines = [f"{scores.metric}  {scores.scores[0].signature}"]
    has_seeds = any(spread.deviation is not None for spread in scores.spreads)
    ranges = [spread.format_range() * has_seeds for spread in scores.spreads]
    width = max(map(len, ranges))
    for letter, score, seeds in zip(letters, scores.scores, ranges, strict=True):
        parts = [f"{letter}     {score.value:6.2f}"]
        if has_seeds:
            parts.append(f"{seeds:<{width}}")
        if score.interval:
            mean, half_width = score.interval.mean, score.interval.half_width
            parts.append(f"μ = {mean:.2f} ± {half_width:.2f}")
        lines.append("  ".join(parts).rstrip())
    for difference in scores.differences:
        pair = f"{letters[difference.second]} - {letters[difference.first]}"
        interval = describe_difference(difference)
        lines.append(
            f"{pair} {difference.value:+6.2f}  {interval}{'  ' if interval else ''}"
            f"p = {format_p_value(difference.corrected_p_value)}  "
            f"{describe_verdict(scores, difference, letters)}"
        )
    return "\n".join(lines)


def format_table(table: Table, letters: str) -> str:
    """Return a table with a column for each system."""
    rows = [
        [row.label, f"{row.count:,}", *map(table.format_value, row.values)]
        for row in table.rows
    ]
    return "\n".join([table.title, *tables.align([["", table.unit, *letters], *rows])])


def describe_pair(pair: PairOfSystems, letters: str) -> str:
    """Return in words on how many lines each of two systems is better."""
    first, second = letters[pair.first], letters[pair.second]
    return (
        f"{first} and {second} by chrF2 of each line: {first} is better on "
        f"{pair.num_first_better:,}, {second} on {pair.num_second_better:,}, equal on "
        f"{pair.num_equal:,}"
    )


def _format_pair(pair: PairOfSystems, letters: str) -> str:
    lines = [describe_pair(pair, letters)]
    names = (letters[pair.first], letters[pair.second])
    for difference in (*pair.first_better, *pair.second_better):
        lines.append(_format_line(difference, names))
    return "\n".join(lines)


def _format_line(difference: LineDifference, names: tuple[str, str]) -> str:
    """Return a line with the words of both outputs, in the notation of wdiff."""
    first, second = names
    marks = {"both": ("", ""), "first": ("[-", "-]"), "second": ("{+", "+}")}
    words = ""
    for span in difference.spans:
        opening, closing = marks[span.side]
        space = " " if words and span.space else ""
        words += f"{space}{opening}{span.text}{closing}"
    return (
        f"line {difference.line:,}: {first} {difference.first:.1f}, "
        f"{second} {difference.second:.1f}\n"
        f"  source     {difference.source}\n"
        f"  reference  {difference.reference}\n"
        f"  [-{first}-] {{+{second}+}}  {words}"
    )
