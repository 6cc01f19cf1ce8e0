"""Show what each head of a model does over a text, on a page and in a terminal."""

import logging
from collections.abc import Iterator

from vaswani_jax.analysis import importance, measures, roles, views
from vaswani_jax.core import tables
from vaswani_jax.inference import scoring
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import contents, heads_text

logger = logging.getLogger(__name__)


def describe_heads(translator: Translator, text: heads_text.Text) -> contents.Heads:
    """Return what each head of a model does over a text.

    Reads at most 500 lines, evenly spread. A line that is empty, or in which either
    side has more than 128 subwords, the end mark included, is left out.

    >>> lines = ["3 hours ago"], ["vor 3 Stunden"]
    >>> text = heads_text.Text("my text", *lines)
    >>> describe_heads(translator, text).heads[0].roles  # doctest: +SKIP
    ()

    Raises:
        ValueError: The translator is an ensemble, the numbers of lines differ, no line
            is left, a line lacks its tag, or a tree or an alignment does not fit its
            line.
    """
    model, vocab_size = translator.member.model, translator.vocabulary.size
    selection = heads_text.select(translator, text)
    ids = [pair.ids for pair in selection]
    [params] = translator.replicated_params
    layers = {kind: range(scoring.depth(model, kind)) for kind in scoring.KINDS}
    scores = scoring.iterate_scores(
        ids, models=(model,), params=(params,), vocab_size=vocab_size, layers=layers
    )
    tables = heads_text.make_tables(translator, text.counts)

    def all_views() -> Iterator[views.View]:
        for index, line_score in scores:
            yield from heads_text.to_pair(selection[index], tables).views(
                line_score.attention
            )

    measurements = measures.measure(all_views())
    num_heads = sum(map(len, measurements.values()))
    logger.info(
        f"heads: measured on {len(ids):,} lines of {text.name}; switching off each of "
        f"{num_heads} in turn"
    )
    loss = importance.loss(ids, model=model, params=params, vocab_size=vocab_size)
    losses = importance.importances(
        ids, model=model, params=params, vocab_size=vocab_size, full_loss=loss
    )
    heads = tuple(
        contents.Head(
            kind=kind,
            layer=number // model.num_heads + 1,
            head=number % model.num_heads + 1,
            measures=values,
            roles=roles.roles(values, kind=kind),
            importance=next(losses),
        )
        for kind in contents.KINDS
        for number, values in enumerate(measurements[kind])
    )
    return contents.Heads(
        text=text.name,
        num_lines=len(ids),
        loss=loss,
        descriptions=measures.DESCRIPTIONS,
        thresholds=roles.thresholds(),
        heads=heads,
    )


def table(heads: contents.Heads) -> str:
    """Return the heads as a table for a terminal: `value/chance`, roles last."""
    names = [
        name
        for name in heads.descriptions
        if any(
            head.measures.get(name, (None, None))[0] is not None for head in heads.heads
        )
    ]
    rows = [["attention", "layer", "head", *names, "importance", "what it does"]]
    for head in heads.heads:
        cells = [_cell(*head.measures.get(name, (None, None))) for name in names]
        rows.append(
            [
                head.kind,
                str(head.layer),
                str(head.head),
                *cells,
                "-" if head.importance is None else f"{head.importance:.4f}",
                ", ".join(head.roles) or "no clear role",
            ]
        )
    lines = tables.align(rows, num_left=len(rows[0]))
    title = (
        f"{heads.num_lines:,} lines of {heads.text}, loss {heads.loss:.4f} nats a token"
    )
    return "\n".join([title, *lines])


def _cell(value: float | None, chance: float | None) -> str:
    """Return a value and its chance level.

    >>> _cell(0.5, 0.25), _cell(0.5, None), _cell(None, None)
    ('0.50/0.25', '0.50', '-')
    """
    if value is None:
        return "-"
    return f"{value:.2f}" if chance is None else f"{value:.2f}/{chance:.2f}"
