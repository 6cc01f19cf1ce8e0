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
    *,
    steps: Mapping[str, Sequence[int]],
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
        layers.crossing(list(lengths), one=list(one), other=list(other))
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
            _, own = results.figures(found)
            told = results.verdict(own, bleu, tolerance=results.BLEU_TOLERANCE)
            told = told if own is None else f"{own:.2f}, {told}"
            cells.append(f"{told} ({found.where})" if found else told)
        for language, cost in zip(("de", "fr"), _cost(printed), strict=True):
            operations = model_cost(presets[size, language])
            cells.append(f"{operations:.1e}, {_same_figures(operations, cost)}")
        rows.append([f"**{size}, this code**", *cells])
        spent = paper.training_cost(size)
        costs = [f"{spent:.1e}, {_same_figures(spent, c)}" for c in _cost(printed)]
        rows.append([f"**{size}, hours x GPUs x FLOP/s**", None, None, *costs])
    notes = (
        "The printed costs are the hardware's: hours x GPUs x the operations a GPU "
        "sustains. This code's are the operations of the model's matrix products, for "
        f"batches of {BATCH_TOKENS:,} + {BATCH_TOKENS:,} tokens in sentences of "
        f"{SENTENCE_TOKENS}: something else, and less. {RULE}"
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
    head = ["row", "parameters", "printed", "is", "V it implies"]
    head += ["perplexity", "printed", "is", "BLEU", "printed", "is", "from"]
    lines = []
    found = results.rows(runs, rows)
    for row, settings in rows.items():
        printed = paper.TABLE3[row]
        count = parameters.total(settings.model, vocab_size=settings.data.vocab_size)
        implied = None
        if printed.parameters:
            low, high = parameters.implied_vocabulary(
                settings.model, printed.parameters
            )
            implied = f"{low:,} to {high:,}"
        one = found[row]
        perplexity, bleu = results.figures(one)
        near = results.PERPLEXITY_TOLERANCE * printed.perplexity
        millions = count / 1e6
        lines.append(
            [
                row,
                f"{millions:.1f} M",
                printed.parameters and f"{printed.parameters:.0f} M",
                results.verdict(millions, printed.parameters, tolerance=0.5),
                implied,
                perplexity and f"{perplexity:.2f}",
                f"{printed.perplexity:.2f}",
                results.verdict(perplexity, printed.perplexity, tolerance=near),
                bleu and f"{bleu:.2f}",
                f"{printed.bleu:.1f}",
                results.verdict(bleu, printed.bleu, tolerance=results.BLEU_TOLERANCE),
                one and one.where,
            ]
        )
    size = rows["base"].data.vocab_size
    return (
        f"Parameters at V = {size:,}. The printed counts of the rows that vary the "
        "base model need a vocabulary of about 41,100, that of the big model one of "
        f"36,000: no single one explains them. {RULE} Our perplexity is of the plain "
        "likelihood, per subword of our vocabulary; whether the printed one is of the "
        "smoothed likelihood the paper does not say (it matters in rows D3 and D4), "
        "and its subwords are others.\n\n"
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


def _bleu(system: paper.System) -> tuple[float | None, float | None]:
    return system.bleu_ende, system.bleu_enfr


def _same_figures(ours: float, printed: float | None) -> str:
    """Whether a number is the printed one in the two figures that it has."""
    if printed is None:
        return "not printed"
    return "reproduced" if f"{ours:.1e}" == f"{printed:.1e}" else "differs"


def _cost(system: paper.System) -> tuple[float | None, float | None]:
    return system.cost_ende, system.cost_enfr
