"""The paper's tables as Markdown, from the code and from what has been run."""

import datetime
import os
import platform
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import config, environment, parallel
from vaswani_jax.model import cost as cost_
from vaswani_jax.model import positional_encoding
from vaswani_jax.paper import printed as printed_
from vaswani_jax.paper import runs as runs_
from vaswani_jax.training import optimizer

SENTENCE_TOKENS = 25
RULE = (
    f"Reproduced: within {runs_.BLEU_TOLERANCE} BLEU, or within "
    f"{runs_.PERPLEXITY_TOLERANCE:.0%} of the printed perplexity."
)


def provenance() -> str:
    """When, from what and on what it was made."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="minutes")
    made = environment.describe()
    return (
        f"Made {now}, revision {made['revision']}, jax {made['jax']}, "
        f"{parallel.describe()}, {os.cpu_count()} cores ({platform.machine()})."
    )


def table2(
    presets: Mapping[tuple[str, str], config.Config], runs: Sequence[runs_.Found]
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
        for system in printed_.TABLE2
    ]
    for size, printed in (("base", printed_.TABLE2[-2]), ("big", printed_.TABLE2[-1])):
        cells = []
        for language, bleu in zip(("de", "fr"), _bleu(printed), strict=True):
            found = runs_.scored(runs, presets[size, language], split="test")
            _, own = runs_.figures(found)
            told = runs_.verdict(own, bleu, tolerance=runs_.BLEU_TOLERANCE)
            told = told if own is None else f"{own:.2f}, {told}"
            cells.append(f"{told} ({found.where})" if found else told)
        for language, cost in zip(("de", "fr"), _cost(printed), strict=True):
            operations = model_cost(presets[size, language])
            cells.append(f"{operations:.1e}, {_same_figures(operations, cost)}")
        rows.append([f"**{size}, this code**", *cells])
        spent = printed_.training_cost(size)
        costs = [f"{spent:.1e}, {_same_figures(spent, c)}" for c in _cost(printed)]
        rows.append([f"**{size}, hours x GPUs x FLOP/s**", None, None, *costs])
    base, big = (update_cost(presets[size, "de"]) for size in ("base", "big"))
    tokens = presets["base", "de"].data.target_tokens_per_batch
    notes = (
        "The printed BLEU of En-De is tokenised and compound-split, as its authors "
        "say (tensor2tensor#61), against a reference with straight quotes "
        "(tensor2tensor#317); ours is paper_bleu_split_ascii, which has ASCII's "
        "punctuation on both sides. The kind of En-Fr's is not said; ours is "
        "tokenised, paper_bleu. "
        "The printed costs are the hardware's: hours x GPUs x the operations a GPU "
        "sustains. This code's are the operations of the model's matrix products "
        f"({base:.2e} an update of base, {big:.2e} of big), for batches of "
        f"{tokens:,} + {tokens:,} tokens in sentences of {SENTENCE_TOKENS}: something "
        f"else, and less. {RULE}"
    )
    return f"{notes}\n\n{runs_.markdown(head, rows)}"


def model_cost(settings: config.Config) -> float:
    """Operations of the matrix products of a whole training."""
    return update_cost(settings) * settings.training.num_steps


def update_cost(settings: config.Config) -> float:
    """Those of one update, whose batch is full of sentences of `SENTENCE_TOKENS`."""
    return cost_.update_flops(
        settings.model,
        vocab_size=settings.data.vocab_size,
        rows=settings.data.target_tokens_per_batch // SENTENCE_TOKENS,
        source=SENTENCE_TOKENS,
        target=SENTENCE_TOKENS,
    )


def table3(rows: Mapping[str, config.Config], runs: Sequence[runs_.Found]) -> str:
    """Parameters, perplexity and BLEU of every row, printed and ours."""
    head = ["row", "parameters", "printed", "is", "V it implies"]
    head += ["perplexity", "printed", "is", "BLEU", "printed", "is", "from"]
    lines = []
    found = runs_.rows(runs, rows)
    for row, settings in rows.items():
        printed = printed_.TABLE3[row]
        count = cost_.total(settings.model, vocab_size=settings.data.vocab_size)
        implied = None
        if printed.parameters:
            low, high = cost_.implied_vocabulary(settings.model, printed.parameters)
            implied = f"{low:,} to {high:,}"
        one = found[row]
        perplexity, bleu = runs_.figures(one)
        near = runs_.PERPLEXITY_TOLERANCE * printed.perplexity
        millions = count / 1e6
        lines.append(
            [
                row,
                f"{millions:.1f} M",
                printed.parameters and f"{printed.parameters:.0f} M",
                runs_.verdict(millions, printed.parameters, tolerance=0.5),
                implied,
                perplexity and f"{perplexity:.2f}",
                f"{printed.perplexity:.2f}",
                runs_.verdict(perplexity, printed.perplexity, tolerance=near),
                bleu and f"{bleu:.2f}",
                f"{printed.bleu:.1f}",
                runs_.verdict(bleu, printed.bleu, tolerance=runs_.BLEU_TOLERANCE),
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
        "and its subwords are others. Nor is the kind of the printed BLEU said; ours "
        "is table 2's (paper_bleu_split_ascii).\n\n"
        f"{runs_.markdown(head, lines)}"
    )


def evaluations(runs: Sequence[runs_.Found]) -> str:
    """Every evaluation that was read, of whatever settings."""
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
                f"{run.bleu:.2f}",
                run.metric,
            ]
        )
    head = ["workdir", "split", "checkpoint", "beam, alpha", "perplexity", "BLEU"]
    return runs_.markdown([*head, "is"], lines)


def matrices(rows: Mapping[str, config.Config]) -> str:
    """Parameters of every row by the matrix they are in, in millions."""
    counts = {
        row: cost_.by_matrix(settings.model, vocab_size=settings.data.vocab_size)
        for row, settings in rows.items()
    }
    names = list(dict.fromkeys(name for count in counts.values() for name in count))
    lines = [
        [row, *(f"{count.get(name, 0) / 1e6:.3f}" for name in names)]
        for row, count in counts.items()
    ]
    return runs_.markdown(["row", *names], lines)


def learning_rate(settings: config.Config) -> str:
    """Where equation 3 is greatest, and whether that is where it is printed."""
    rate = optimizer.warmup_inverse_sqrt(
        d_model=settings.model.d_model,
        warmup_steps=settings.optimizer.warmup_steps,
        scale=settings.optimizer.learning_rate_scale,
    )
    values = np.asarray(jax.vmap(rate)(jnp.arange(settings.training.num_steps)))
    peak = int(values.argmax()) + 1  # the paper counts updates from 1
    told = runs_.verdict(float(peak), float(printed_.WARMUP_STEPS), tolerance=0.0)
    return (
        f"Over the {values.size:,} updates of the base model it is greatest, "
        f"{values.max():.3e}, in update {peak:,}; printed: {printed_.WARMUP_STEPS:,} "
        f"updates of warm-up: {told}."
    )


def positions(settings: config.Config) -> str:
    """How far the sinusoids are from their formula, computed in double precision."""
    d, last = settings.model.d_model, settings.data.max_length
    ours = np.asarray(positional_encoding.sinusoids(jnp.arange(last + 1), d_model=d))
    position, pair = np.arange(last + 1)[:, None], np.arange(d // 2)
    angle = position / 10_000 ** (2 * pair / d)
    apart = max(
        float(abs(ours[:, 0::2] - np.sin(angle)).max()),
        float(abs(ours[:, 1::2] - np.cos(angle)).max()),
    )
    # A float32 of that size has steps of 1e-7 of it, and so has the sine's argument.
    told = runs_.verdict(apart, 0.0, tolerance=last * 2**-23)
    return (
        f"PE(pos, 2i) = sin(pos / 10000^(2i / d)), PE(pos, 2i + 1) its cosine: at "
        f"positions 0 to {last:,} and d = {d} ours are at most {apart:.1e} from that "
        f"in double precision: {told}."
    )


def _bleu(system: printed_.System) -> tuple[float | None, float | None]:
    return system.bleu_ende, system.bleu_enfr


def _same_figures(ours: float, printed: float | None) -> str:
    """Whether a number is the printed one in the two figures that it has."""
    if printed is None:
        return "not printed"
    return "reproduced" if f"{ours:.1e}" == f"{printed:.1e}" else "differs"


def _cost(system: printed_.System) -> tuple[float | None, float | None]:
    return system.cost_ende, system.cost_enfr
