"""The paper's tables as Markdown, from the code and from what has been run."""

from collections.abc import Mapping, Sequence

from vaswani_jax.analysis import flops, layers, paper, parameters, results
from vaswani_jax.core import config

BATCH_TOKENS, SENTENCE_TOKENS = 25_000, 25
RULE = (
    f"Reproduced: within {results.BLEU_TOLERANCE} BLEU, or within "
    f"{results.PERPLEXITY_TOLERANCE:.0%} of the printed perplexity."
)
Measured = Mapping[str, Sequence[float]]


def table1(
    lengths: Sequence[int],
    seconds: Measured,
    steps: Mapping[str, Sequence[int]],
    *,
    d: int,
    kernel: int,
    window: int,
) -> str:
    """Every kind of layer: the formulas, their values, and what was measured.

    Args:
        lengths: n.
        seconds: Time of each kind of layer at each length.
        steps: Steps one after the other in its program at each length.
        d: Width.
        kernel: k.
        window: r.
    """
    printed = results.markdown(
        ["layer", "complexity", "sequential operations", "maximum path"],
        [
            [kind.name, kind.complexity, kind.sequential, kind.path]
            for kind in layers.TABLE1
        ],
    )
    lines = [
        [
            n,
            *(
                f"{kind.operations(n=n, d=d, k=kernel, r=window):.1e}; "
                f"{kind.sequential_operations(n=n)}, {steps[kind.name][index]}; "
                f"{kind.path_length(n=n, k=kernel, r=window)}; "
                f"{1e3 * seconds[kind.name][index]:.2f} ms"
                for kind in layers.TABLE1
            ),
        ]
        for index, n in enumerate(lengths)
    ]
    measured = results.markdown(["n", *(kind.name for kind in layers.TABLE1)], lines)
    attention, recurrent = layers.TABLE1[:2]
    by_formula, by_clock = (
        layers.crossing(list(lengths), list(one), list(other))
        for one, other in (
            tuple(
                [float(kind.operations(n=n, d=d, k=kernel, r=window)) for n in lengths]
                for kind in (attention, recurrent)
            ),
            (seconds[attention.name], seconds[recurrent.name]),
        )
    )
    told = [
        f"{name}: {'not at these lengths' if where is None else f'n = {where:,.0f}'}"
        for name, where in (("by the formula", by_formula), ("measured", by_clock))
    ]
    return (
        f"{printed}\n\nAt d = {d}, k = {kernel}, r = {window}: the term inside O(.); "
        "the steps that wait for one another, by the formula and found in the program; "
        "the path; the time of a layer. Self-attention takes longer than recurrence "
        f"from, {'; '.join(told)}. (What is timed has what table 1 leaves out: the "
        "products of an LSTM's gates are 8 n d^2, those of attention 2 n^2 d and, for "
        f"its projections, 4 n d^2: equal at n = 2 d.)\n\n{measured}"
    )


def table2(
    presets: Mapping[tuple[str, str], config.Config], runs: Sequence[results.Found]
) -> str:
    """Printed and found BLEU on newstest2014, and the training cost both ways.

    Args:
        presets: By "base" or "big" and "de" or "fr".
        runs: What has been run.
    """
    head = ["system", "En-De", "En-Fr", "cost En-De", "cost En-Fr"]
    rows: list[list[str | None]] = [
        [
            system.name,
            *(None if value is None else f"{value:g}" for value in _bleu(system)),
            *(None if value is None else f"{value:.1e}" for value in _cost(system)),
        ]
        for system in paper.TABLE2
    ]
    for size, printed in (("base", paper.TABLE2[-2]), ("big", paper.TABLE2[-1])):
        cells = []
        for language, bleu in zip(("de", "fr"), _bleu(printed), strict=True):
            found = results.scored(runs, presets[size, language], split="test")
            own = found.bleu if found else None
            told = results.verdict(own, bleu, results.BLEU_TOLERANCE)
            cells.append(f"{own:.2f}, {told} ({_where(found)})" if found else told)
        costs = [model_cost(presets[size, language]) for language in ("de", "fr")]
        rows.append([f"**{size}, this code**", *cells, *(f"{c:.1e}" for c in costs)])
    notes = (
        "Printed costs are time x GPUs x sustained operations: "
        f"{paper.training_cost('base'):.2e} for base and "
        f"{paper.training_cost('big'):.2e} for big. Ours are the operations of the "
        f"model's matrix products, for batches of {BATCH_TOKENS:,} + {BATCH_TOKENS:,} "
        f"tokens in sentences of {SENTENCE_TOKENS}. {RULE}"
    )
    return f"{notes}\n\n{results.markdown(head, rows)}"


def model_cost(settings: config.Config) -> float:
    """Operations of the matrix products of a whole training."""
    update = flops.update_flops(
        settings.model,
        vocab_size=settings.data.vocab_size,
        rows=BATCH_TOKENS // SENTENCE_TOKENS,
        source=SENTENCE_TOKENS,
        target=SENTENCE_TOKENS,
    )
    return update * settings.training.num_steps


def table3(rows: Mapping[str, config.Config], runs: Sequence[results.Found]) -> str:
    """Parameters, perplexity and BLEU of every row, printed and ours."""
    head = ["row", "parameters", "printed", "V it implies"]
    head += ["perplexity", "printed", "", "BLEU", "printed", "", "from"]
    lines = []
    for row, settings in rows.items():
        printed = paper.TABLE3[row]
        count = parameters.total(settings.model, vocab_size=settings.data.vocab_size)
        implied = None
        if printed.parameters:
            low, high = parameters.implied_vocabulary(
                settings.model, printed.parameters
            )
            implied = f"{low:,} to {high:,}"
        found = results.scored(runs, settings, split="valid")
        perplexity = found.perplexity if found else None
        bleu = found.bleu if found else None
        near = results.PERPLEXITY_TOLERANCE * printed.perplexity
        lines.append(
            [
                row,
                f"{count / 1e6:.1f} M",
                printed.parameters and f"{printed.parameters:.0f} M",
                implied,
                perplexity and f"{perplexity:.2f}",
                f"{printed.perplexity:.2f}",
                results.verdict(perplexity, printed.perplexity, near),
                bleu and f"{bleu:.2f}",
                f"{printed.bleu:.1f}",
                results.verdict(bleu, printed.bleu, results.BLEU_TOLERANCE),
                found and _where(found),
            ]
        )
    size = rows["base"].data.vocab_size
    return (
        f"Parameters at V = {size:,}. The printed counts of the rows that vary the "
        "base model need a vocabulary of about 41,100, that of the big model one of "
        f"36,000: no single one explains them. {RULE}\n\n"
        f"{results.markdown(head, lines)}"
    )


def matrices(rows: Mapping[str, config.Config]) -> str:
    """Parameters of every row by the matrix they are in, in millions."""
    counts = {
        row: parameters.by_matrix(settings.model, vocab_size=settings.data.vocab_size)
        for row, settings in rows.items()
    }
    names = list(dict.fromkeys(name for count in counts.values() for name in count))
    lines = [
        [row, *(f"{count.get(name, 0) / 1e6:.3f}" for name in names)]
        for row, count in counts.items()
    ]
    return results.markdown(["row", *names], lines)


def table3_small(
    rows: Mapping[str, config.Config], runs: Sequence[results.Found]
) -> str:
    """The same variations of a small model, and whether they move as the paper's."""
    found = {
        row: results.scored(runs, settings, split="valid")
        for row, settings in rows.items()
    }
    perplexities = {row: one.perplexity for row, one in found.items() if one}
    bleus = {row: one.bleu for row, one in found.items() if one}
    base = paper.TABLE3["base"]
    noise = results.PERPLEXITY_NOISE * perplexities.get("base", 0)
    lines = []
    for row, settings in rows.items():
        printed, one = paper.TABLE3[row], found[row]
        count = parameters.total(settings.model, vocab_size=settings.data.vocab_size)
        lines.append(
            [
                row,
                f"{count / 1e6:.2f} M",
                one and f"{one.perplexity:.2f}",
                f"{printed.perplexity - base.perplexity:+.2f}",
                _trend(perplexities, row, "perplexity", noise),
                one and f"{one.bleu:.2f}",
                f"{printed.bleu - base.bleu:+.1f}",
                _trend(bleus, row, "bleu", results.BLEU_NOISE),
                one and _where(one),
            ]
        )
    head = ["row", "parameters", "perplexity", "paper's change", "ours moves"]
    head += ["BLEU", "paper's change", "ours moves", "from"]
    return (
        f"A change of up to {results.BLEU_NOISE} BLEU, or of "
        f"{results.PERPLEXITY_NOISE:.0%} of the base model's perplexity, is no clear "
        f"difference.\n\n{results.markdown(head, lines)}"
    )


def _trend(
    ours: Mapping[str, float], row: str, figure: str, noise: float
) -> str | None:
    if row == "base":
        return None
    printed = {name: getattr(one, figure) for name, one in paper.TABLE3.items()}
    return results.trend(ours, printed, row, noise=noise)


def _where(found: results.Found) -> str:
    """The workdir that a figure comes from, and which BLEU it is."""
    return f"{found.workdir}: {found.metric}"


def _bleu(system: paper.System) -> tuple[float | None, float | None]:
    return system.bleu_ende, system.bleu_enfr


def _cost(system: paper.System) -> tuple[float | None, float | None]:
    return system.cost_ende, system.cost_enfr
