"""Tables 2 and 3, sections 3.5 and 5.3, as Markdown: printed and from this code."""

import datetime
import os
import platform
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.checkpoints import run_record
from vaswani_jax.core import config, parallel
from vaswani_jax.evaluation.spread import Spread
from vaswani_jax.model import cost, positional_encoding
from vaswani_jax.paper import markdown, printed, scored_runs
from vaswani_jax.paper.presets import SystemName
from vaswani_jax.paper.scored_runs import ScoredRun
from vaswani_jax.training import optimizer

BLEU_TOLERANCE = 0.3
PERPLEXITY_TOLERANCE = 0.02  # of the printed one
SENTENCE_TOKENS = 25
LANGUAGES = ("de", "fr")
RULE = (
    f"Reproduced: within {BLEU_TOLERANCE} BLEU, or within "
    f"{PERPLEXITY_TOLERANCE:.0%} of the printed perplexity."
)


def origin() -> dict[str, str]:
    """Return when, from which revision and on what hardware the report is made."""
    versions = run_record.describe_software()
    cores = f"{os.cpu_count()} cores ({platform.machine()})"
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes"),
        "commit": versions["revision"],
        "jax": versions["jax"],
        "hardware": f"{parallel.describe()}, {cores}",
    }


def provenance(origin: Mapping[str, str]) -> str:
    """Return the origin of a report as a sentence."""
    return (
        f"Made {origin['date']}, revision {origin['commit']}, jax {origin['jax']}, "
        f"{origin['hardware']}."
    )


def table2(
    systems: Mapping[SystemName, config.Config], runs: Sequence[ScoredRun]
) -> str:
    """Return BLEU on newstest2014 and training costs, the printed ones and ours.

    Args:
        systems: The settings of each system of the paper.
        runs: To look for them in.
    """
    head = ["system", "En-De", "En-Fr", "cost En-De", "cost En-Fr"]
    rows: list[list[str | None]] = [
        [
            row.name,
            *(None if bleu is None else f"{bleu:g}" for bleu in row.bleu),
            *(None if flops is None else f"{flops:.1e}" for flops in row.cost),
        ]
        for row in printed.TABLE2
    ]
    for size, row in (("base", printed.TABLE2[-2]), ("big", printed.TABLE2[-1])):
        cells = []
        for language, printed_bleu in zip(LANGUAGES, row.bleu, strict=True):
            run = scored_runs.find_run(runs, systems[size, language], split="test")
            bleu = run.score if run and not run.flaw else None
            cell = markdown.verdict(bleu, printed_bleu, tolerance=BLEU_TOLERANCE)
            cell = cell if bleu is None else f"{bleu:.2f}, {cell}"
            cells.append(f"{cell} ({run.source})" if run else cell)
        for language, printed_cost in zip(LANGUAGES, row.cost, strict=True):
            operations = training_operations(systems[size, language])
            cells.append(_cost_cell(operations, printed_cost))
        rows.append([f"**{size}, this code**", *cells])
        hardware = printed.training_cost(size)
        costs = [_cost_cell(hardware, printed_cost) for printed_cost in row.cost]
        rows.append([f"**{size}, hours x GPUs x FLOP/s**", None, None, *costs])
    base, big = (update_operations(systems[size, "de"]) for size in ("base", "big"))
    tokens = systems["base", "de"].data.target_tokens_per_batch
    notes = (
        "The printed BLEU of En-De is tokenized and compound-split, as its authors "
        "say (tensor2tensor#61), against a reference with straight quotes "
        "(tensor2tensor#317); ours is paper_bleu_split_ascii, with ASCII's punctuation "
        "on both sides. The paper does not say which BLEU En-Fr's is; ours is "
        "tokenized, paper_bleu. The printed costs are the hardware's: hours x GPUs x "
        "the operations a GPU sustains. This code's are the operations of the model's "
        f"matrix products ({base:.2e} an update of base, {big:.2e} of big), for "
        f"batches of {tokens:,} + {tokens:,} tokens in sentences of {SENTENCE_TOKENS}: "
        f"another quantity, and a smaller one. {RULE}"
    )
    return f"{notes}\n\n{markdown.table(head, rows)}"


def training_operations(settings: config.Config) -> float:
    """Return the operations of the matrix products of a whole training."""
    return update_operations(settings) * settings.training.num_steps


def update_operations(settings: config.Config) -> float:
    """Return those of one update on a batch full of sentences of `SENTENCE_TOKENS`."""
    return cost.update_flops(
        settings.model,
        vocab_size=settings.data.planned_vocab_size,
        rows=settings.data.target_tokens_per_batch // SENTENCE_TOKENS,
        source=SENTENCE_TOKENS,
        target=SENTENCE_TOKENS,
    )


def table3(rows: Mapping[str, config.Config], runs: Sequence[ScoredRun]) -> str:
    """Return parameters, perplexity and BLEU of every row, printed and ours."""
    head = ["row", "parameters", "printed", "is", "V it implies"]
    head += ["perplexity", "printed", "is", "BLEU", "printed", "is", "from"]
    lines = []
    run_by_row = scored_runs.find_rows(runs, rows)
    for row, settings in rows.items():
        paper = printed.TABLE3[row]
        count = cost.count_parameters(
            settings.model, vocab_size=settings.data.planned_vocab_size
        )
        implied_range = None
        if paper.parameters:
            low, high = cost.implied_vocabulary(settings.model, paper.parameters)
            implied_range = f"{low:,} to {high:,}"
        run = run_by_row[row]
        complete = scored_runs.complete(run)
        perplexity = complete.perplexity if complete else None
        bleu = complete.score if complete else None
        tolerance = PERPLEXITY_TOLERANCE * paper.perplexity
        millions = count / 1e6
        lines.append(
            [
                row,
                f"{millions:.1f} M",
                paper.parameters and f"{paper.parameters:.0f} M",
                markdown.verdict(millions, paper.parameters, tolerance=0.5),
                implied_range,
                perplexity and f"{perplexity:.2f}",
                f"{paper.perplexity:.2f}",
                markdown.verdict(perplexity, paper.perplexity, tolerance=tolerance),
                bleu and f"{bleu:.2f}",
                f"{paper.bleu:.1f}",
                markdown.verdict(bleu, paper.bleu, tolerance=BLEU_TOLERANCE),
                run and run.source,
            ]
        )
    size = rows["base"].data.vocab_size
    return (
        f"Parameters at V = {size:,}. The printed counts of the rows that vary the "
        "base model need a vocabulary of about 41,100, that of the big model one of "
        f"36,000: no single one explains them. {RULE} Our perplexity is of the "
        "likelihood without smoothing, per subword of our vocabulary, which is another "
        "one; whether the printed one is of the smoothed likelihood the paper does not "
        "say (it matters in rows D3 and D4). It does not say which BLEU is printed "
        "either; ours is table 2's (paper_bleu_split_ascii).\n\n"
        f"{markdown.table(head, lines)}"
    )


def evaluations(runs: Sequence[ScoredRun]) -> str:
    """Return every evaluation, whatever its settings."""
    if not runs:
        return "Nothing."
    lines = []
    for run in runs:
        search = run.record["search"]
        lines.append(
            [
                run.workdir,
                run.record["split"],
                f"{run.record['checkpoint']} at {run.record['step']:,}",
                f"{search['beam_size']}, {search['length_penalty']:g}",
                f"{run.perplexity:.2f}",
                f"{run.score:.2f}",
                run.metric,
            ]
        )
    score = _score_names(runs)
    head = ["workdir", "split", "checkpoint", "beam, alpha", "perplexity", score, "is"]
    return markdown.table(head, lines)


def _score_names(runs: Sequence[ScoredRun]) -> str:
    """Return what the scores of runs are, for the head of their column."""
    names = {
        "BLEU": any(run.has_bleu for run in runs),
        "F1": any(run.is_parsing for run in runs),
        "chrF2": any(run.metric.startswith("chrf") for run in runs),
    }
    return " or ".join(name for name, is_there in names.items() if is_there)


def average_seeds(runs: Sequence[ScoredRun]) -> str:
    """Return mean and spread of the scores of each directory of seeds."""
    groups = scored_runs.group_seeds(runs)
    if not groups:
        return "No runs of several seeds; train them by `vaswani train --seeds=3`."
    lines = []
    for group in groups:
        first = group[0]
        score = Spread([run.score for run in group])
        perplexity = Spread([run.perplexity for run in group])
        search = first.record["search"]
        lines.append(
            [
                first.workdir.parent,
                ", ".join(str(run.settings["seed"]) for run in group),
                first.record["split"],
                first.record["checkpoint"],
                f"{search['beam_size']}, {search['length_penalty']:g}",
                f"{perplexity.mean:.2f}",
                f"{score.mean:.2f}",
                score.format_range(),
                "; ".join(
                    dict.fromkeys(
                        f"{run.workdir.name}: {run.flaw}"
                        if run.flaw and run.record["checkpoint"] == "averaged"
                        else run.metric
                        for run in group
                    )
                ),
            ]
        )
    first_runs = [group[0] for group in groups]
    head = ["workdir", "seeds", "split", "checkpoint", "beam, alpha"]
    head += ["perplexity", _score_names(first_runs), "spread", "is"]
    note = (
        "Perplexity and score are means. The spread is the score's: its standard "
        "deviation (sd), lowest and highest value."
    )
    return f"{note}\n\n{markdown.table(head, lines)}"


def matrices(rows: Mapping[str, config.Config]) -> str:
    """Return the parameters of every row by kind of matrix, in millions."""
    counts = {
        row: cost.count_by_matrix(
            settings.model, vocab_size=settings.data.planned_vocab_size
        )
        for row, settings in rows.items()
    }
    names = list(dict.fromkeys(name for count in counts.values() for name in count))
    lines = [
        [row, *(f"{count.get(name, 0) / 1e6:.3f}" for name in names)]
        for row, count in counts.items()
    ]
    return markdown.table(["row", *names], lines)


def learning_rate(settings: config.Config) -> str:
    """Return where equation 3 is greatest, and whether the paper says the same."""
    rate = optimizer.learning_rate(settings)
    rates = np.asarray(jax.vmap(rate)(jnp.arange(settings.training.num_steps)))
    peak = int(rates.argmax()) + 1  # the paper counts updates from 1
    verdict = markdown.verdict(float(peak), float(printed.WARMUP_STEPS), tolerance=0.0)
    return (
        f"Over the {rates.size:,} updates of the base model it is greatest, "
        f"{rates.max():.3e}, in update {peak:,}; printed: {printed.WARMUP_STEPS:,} "
        f"updates of warm-up: {verdict}."
    )


def positions(settings: config.Config) -> str:
    """Return how far the sinusoids are from their formula in double precision."""
    d, last = settings.model.d_model, settings.data.max_length
    sinusoids = np.asarray(
        positional_encoding.sinusoids(jnp.arange(last + 1), d_model=d)
    )
    position, pair = np.arange(last + 1)[:, None], np.arange(d // 2)
    angle = position / 10_000 ** (2 * pair / d)
    error = max(
        float(abs(sinusoids[:, 0::2] - np.sin(angle)).max()),
        float(abs(sinusoids[:, 1::2] - np.cos(angle)).max()),
    )
    # A float32 of that size has steps of 1e-7 of it, and so has the sine's argument.
    verdict = markdown.verdict(error, 0.0, tolerance=last * 2**-23)
    return (
        f"PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) its cosine: at "
        f"positions 0 to {last:,} and d = {d} ours are at most {error:.1e} from that "
        f"in double precision: {verdict}."
    )


def _cost_cell(flops: float, printed_cost: float | None) -> str:
    """Return a cost, and whether it is the printed one in the two digits of that."""
    digits = f"{flops:.1e}"
    return f"{digits}, {markdown.verdict(float(digits), printed_cost, tolerance=0.0)}"
