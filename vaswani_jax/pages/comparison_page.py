"""Write a comparison of systems: one HTML page without a network, JSON or text."""

import html as html_module
import json
import os
import pathlib
import string
from collections.abc import Sequence

from vaswani_jax.core import files
from vaswani_jax.evaluation import comparison_text, significance
from vaswani_jax.evaluation.comparison import SystemComparison
from vaswani_jax.evaluation.line_differences import (
    LineDifference,
    PairOfSystems,
    Side,
)
from vaswani_jax.evaluation.line_tables import Table
from vaswani_jax.pages import html, page_file

ENDINGS = (".html", ".json", ".txt")
# The pixels of the drawing of intervals, without its margins.
WIDTH, MARGIN, MIDDLE = 200, 10, 11


def write_comparison(
    comparison: SystemComparison, path: str | os.PathLike[str]
) -> pathlib.Path:
    """Write a comparison as .html, .json or .txt, whichever the path ends in.

    A file that is there is replaced.

    >>> write_comparison(comparison, "comparison.html")  # doctest: +SKIP

    Raises:
        ValueError: The path has another ending, or the page is larger than 20 MB.
        OSError: The file cannot be written.
    """
    path = pathlib.Path(path)
    page_file.check_ending(path, name="path", endings=ENDINGS)
    ending = path.suffix.lower()
    if ending == ".json":
        text = json.dumps(
            comparison.as_dict(), ensure_ascii=False, allow_nan=False, indent=1
        )
    elif ending == ".txt":
        text = comparison.format()
    else:
        text = render(comparison)
        html.check_size(text, advice="list fewer lines (--lines)")
    files.write_atomically(path, f"{text.rstrip()}\n")
    return path


def render(comparison: SystemComparison) -> str:
    """Return the HTML of a comparison, in which all text is escaped."""
    letters = comparison.letters
    style = html.read_style("comparison.css")
    names = " and ".join(name for name, _ in comparison.systems[:2])
    if len(comparison.systems) > 2:
        names = f"{len(comparison.systems)} systems"
    sections = [
        _systems(comparison),
        *(_scores(scores, letters) for scores in comparison.scores),
        *(
            _table(table, letters, note=comparison.training_text)
            for table in comparison.tables
        ),
        *(
            _pair(pair, letters, is_open=number == 0)
            for number, pair in enumerate(comparison.pairs)
        ),
    ]
    return string.Template(html.read("comparison.html")).substitute(
        policy=_escape(html.content_policy(style=style)),
        title=_escape(f"{names} on {comparison.text}"),
        text=_escape(
            f"{comparison.num_lines:,} lines, references sha256 {comparison.references}"
        ),
        style=style,
        body="\n".join(sections),
        test=_escape(
            ". ".join(
                [
                    comparison_text.describe_test(comparison),
                    *comparison_text.describe_seeds(comparison),
                ]
            )
        ),
    )


def _escape(text: str) -> str:
    return html_module.escape(text, quote=False)


def _rows(
    title: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    num_texts: int = 0,
) -> str:
    """Return a table of cells that are HTML; the first of a row names it.

    Args:
        title: What the table is, for a reader who does not see it.
        head: The head of each column.
        rows: The cells of each row.
        num_texts: How many columns after the first are text, not figures.
    """

    def row(cells: Sequence[str], tag: str, first: str) -> str:
        row_cells = (
            f'<{tag} class="text">{cell}</{tag.split()[0]}>'
            if number < num_texts
            else f"<{tag}>{cell}</{tag.split()[0]}>"
            for number, cell in enumerate(cells[1:])
        )
        return f"<tr>{first}{cells[0]}</th>{''.join(row_cells)}</tr>"

    head_row = row(head, 'th scope="col"', '<th scope="col">')
    body = "".join(row(cells, "td", '<th scope="row">') for cells in rows)
    return (
        f'<div class="scroll" role="group" aria-label="{html_module.escape(title)}" '
        f'tabindex="0"><table><thead>{head_row}</thead><tbody>{body}</tbody></table>'
        "</div>"
    )


def _systems(comparison: SystemComparison) -> str:
    rows = [
        [letter, _escape(name), _escape(origin)]
        for letter, (name, origin) in zip(
            comparison.letters, comparison.systems, strict=True
        )
    ]
    head = ["", "System", "Outputs"]
    return "<h2>Systems</h2>" + _rows("Systems", head, rows, num_texts=2)


def _scores(scores: significance.MetricComparison, letters: str) -> str:
    has_seeds = any(spread.deviation is not None for spread in scores.spreads)
    has_intervals = all(difference.interval for difference in scores.differences)
    rows = [
        [
            letter,
            f"{score.value:.2f}",
            *[spread.format_range()] * has_seeds,
            f"{score.interval.mean:.2f} ± {score.interval.half_width:.2f}"
            if score.interval
            else "",
            _interval(scores, number),
        ]
        for number, (letter, score, spread) in enumerate(
            zip(letters, scores.scores, scores.spreads, strict=True)
        )
    ]
    pairs = []
    for difference in scores.differences:
        verdict = comparison_text.describe_verdict(scores, difference, letters)
        if difference.is_significant:
            verdict = f'<span class="different">{verdict}</span>'
        pairs.append(
            [
                f"{letters[difference.second]} − {letters[difference.first]}",
                verdict,
                f"{difference.value:+.2f}",
                *[comparison_text.describe_difference(difference)] * has_intervals,
                f"{difference.num_lines:,}",
                comparison_text.format_p_value(difference.p_value),
                comparison_text.format_p_value(difference.corrected_p_value),
            ]
        )
    return (
        f"<h2>{_escape(scores.metric)}</h2>"
        f'<p class="quiet">{_escape(scores.scores[0].signature)}</p>'
        + _rows(
            scores.metric,
            ["", "Score", *["Seeds"] * has_seeds, "Mean ± half the 95 % interval", ""],
            rows,
        )
        + _rows(
            f"{scores.metric}: pairs",
            [
                *("", "Verdict", "Difference"),
                *["95 % interval"] * has_intervals,
                *("Lines that differ", "p", "p, corrected"),
            ],
            pairs,
            num_texts=1,
        )
    )


def _interval(scores: significance.MetricComparison, number: int) -> str:
    """Return a drawing of an interval; all of a metric share their axis."""
    intervals = [score.interval for score in scores.scores if score.interval]
    interval = scores.scores[number].interval
    if interval is None:
        return ""
    low = min(bounds.mean - bounds.half_width for bounds in intervals)
    high = max(bounds.mean + bounds.half_width for bounds in intervals)
    span = high - low or 1.0

    def position(value: float) -> str:
        return f"{MARGIN + WIDTH * (value - low) / span:.1f}"

    start = position(interval.mean - interval.half_width)
    end = position(interval.mean + interval.half_width)
    label = f"{interval.mean:.2f} ± {interval.half_width:.2f}"
    return (
        f'<svg class="interval" viewBox="0 0 {WIDTH + 2 * MARGIN} {2 * MIDDLE}" '
        f'role="img" aria-label="{label}">'
        f'<line class="axis" x1="0" x2="{WIDTH + 2 * MARGIN}" y1="{MIDDLE}" '
        f'y2="{MIDDLE}"/><line x1="{start}" x2="{end}" y1="{MIDDLE}" y2="{MIDDLE}"/>'
        f'<circle cx="{position(interval.mean)}" cy="{MIDDLE}" r="5"/></svg>'
    )


def _table(table: Table, letters: str, *, note: str) -> str:
    rows = [
        [_escape(row.label), f"{row.count:,}", *map(table.format_value, row.values)]
        for row in table.rows
    ]
    words = f'<p class="quiet">{_escape(note)}</p>' if table.key == "frequency" else ""
    title = _escape(table.title[:1].upper() + table.title[1:])
    return f"<h2>{title}</h2>{words}" + _rows(
        table.title, ["", table.unit, *letters], rows
    )


def _pair(pair: PairOfSystems, letters: str, *, is_open: bool) -> str:
    first, second = letters[pair.first], letters[pair.second]
    articles = [
        _article(difference, first, second)
        for difference in (*pair.first_better, *pair.second_better)
    ]
    return (
        f"<h2>{first} and {second}, line by line</h2>"
        f"<details{' open' if is_open else ''}>"
        f"<summary>{comparison_text.describe_pair(pair, letters)}</summary>"
        f"{''.join(articles)}</details>"
    )


def _article(difference: LineDifference, first: str, second: str) -> str:
    texts = [
        ("Source", _escape(difference.source)),
        ("Reference", _escape(difference.reference)),
        (f"{first}  {difference.first:.1f}", _marked(difference, "first")),
        (f"{second}  {difference.second:.1f}", _marked(difference, "second")),
    ]
    items = "".join(
        f'<dt>{name}</dt><dd dir="auto">{text}</dd>' for name, text in texts
    )
    return f"<article><h3>Line {difference.line:,}</h3><dl>{items}</dl></article>"


def _marked(difference: LineDifference, side: Side) -> str:
    """Return an output in which the words are marked that the other lacks."""
    text = ""
    for span in difference.output(side):
        words = _escape(span.text)
        space = " " if text and span.has_space(side) else ""
        text += space + (words if span.side == "both" else f"<mark>{words}</mark>")
    return text
