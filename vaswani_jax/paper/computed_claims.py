"""Claims of the paper that need no training: by formula, by counting, by the clock."""

import math
from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from vaswani_jax.core import config, plurals
from vaswani_jax.model import cost, positional_encoding
from vaswani_jax.paper import printed, table1
from vaswani_jax.paper.claim import Claim, verdict_of
from vaswani_jax.paper.presets import SystemName
from vaswani_jax.paper.table1 import Costs

REPORT = "vaswani report"
D_K = 512
SAMPLES = 2000
KEYS = 32
OFFSETS = (1, 7, 64)
SMALL_FRACTION = 1 / 4  # section 6.1, of the best single model on En-Fr
STEP_SECONDS = {"base": 0.4, "big": 1.0}  # section 5.2


def judge(
    systems: Mapping[SystemName, config.Config],
    rows: Mapping[str, config.Config],
    costs: Costs,
) -> list[Claim]:
    """Return the verdicts on all claims that need no training.

    Args:
        systems: The settings of table 2's systems.
        rows: Those of table 3's rows.
        costs: Table 1, counted and timed.
    """
    return [
        _cost_of_training(),
        _cheapest(),
        _scaling(),
        _cost_of_heads(rows),
        _wavelengths(rows["base"]),
        _offsets(rows["base"]),
        _sequential_operations(costs),
        _faster_than_recurrence(costs),
        _hours(systems),
        _quarter(),
        _parameters(rows),
    ]


def _cheapest() -> Claim:
    *models, base, _ = printed.TABLE2
    best, share = _best_single_model()
    least = min(cost for model in models for cost in model.cost if cost)
    return Claim(
        id="fraction-of-the-cost",
        section="abstract",
        text="training on En-Fr costs a small fraction of what the best models of the "
        "time cost",
        verdict=verdict_of(share < SMALL_FRACTION and (base.cost[0] or 0) < least),
        basis="printed table",
        because=(
            f"En-Fr: big takes {share:.2f} of the operations of {best.name}, the best "
            f"single model; base takes fewer than any other, {base.cost[0]:.1e} "
            f"against {least:.1e}"
        ),
        command=REPORT,
        figures={"big by best": share, "base": base.cost[0] or 0, "least": least},
    )


def _best_single_model() -> tuple[printed.System, float]:
    """Return the best earlier single model on En-Fr, and big's share of its cost."""
    *models, _, big = printed.TABLE2
    single = [model for model in models if "Ensemble" not in model.name]
    best = max(single, key=lambda model: model.bleu[1] or 0.0)
    return best, (big.cost[1] or 0) / (best.cost[1] or 1)


def _cost_of_training() -> Claim:
    costs = {size: printed.training_cost(size) for size in ("base", "big")}
    is_so = all(
        f"{costs[size]:.1e}" == f"{system.cost[0]:.1e}"
        for size, system in zip(("base", "big"), printed.TABLE2[-2:], strict=True)
    )
    return Claim(
        id="training-cost",
        section="6.1",
        text="training costs 3.3e18 (base) and 2.3e19 (big) operations: "
        "hours x GPUs x 9.5e12 a second",
        verdict=verdict_of(is_so),
        basis="computation",
        because=f"{costs['base']:.2e} and {costs['big']:.2e}, as printed",
        command=REPORT,
        figures=costs,
    )


def _quarter() -> Claim:
    best, share = _best_single_model()
    return Claim(
        id="quarter-of-the-cost",
        section="6.1",
        text="big needs less than 1/4 of the training cost of the best earlier single "
        "model on En-Fr",
        verdict=verdict_of(share < SMALL_FRACTION),
        basis="printed table",
        because=f"{share:.2f} of the operations of {best.name}",
        command=REPORT,
        figures={"share": share},
    )


def _scaling() -> Claim:
    """Draw queries and keys as in the footnote of section 3.2.1."""
    generator = np.random.default_rng(0)
    query = generator.standard_normal((SAMPLES, D_K))
    keys = generator.standard_normal((SAMPLES, KEYS, D_K))
    products = np.einsum("nd,nkd->nk", query, keys)
    variance = float(products.var())

    def largest(scores: np.ndarray) -> float:
        exponentials = np.exp(scores - scores.max(1, keepdims=True))
        return float((1 / exponentials.sum(1)).mean())

    raw, scaled = largest(products), largest(products / math.sqrt(D_K))
    return Claim(
        id="scaling",
        section="3.2.1",
        text="products of random queries and keys have variance d_k, which drives the "
        "softmax to where its gradient is small; 1/sqrt(d_k) prevents that",
        verdict=verdict_of(abs(variance / D_K - 1) < 0.05 and scaled < 0.5 < raw),
        basis="computation",
        because=(
            f"d_k = {D_K}: variance {variance:.0f}; the largest of {KEYS} weights is "
            f"{raw:.2f} on average without the factor, {scaled:.2f} with it"
        ),
        command=REPORT,
        figures={"variance": variance, "unscaled": raw, "scaled": scaled},
    )


def _cost_of_heads(rows: Mapping[str, config.Config]) -> Claim:
    names = ("base", "A1", "A2", "A3", "A4")
    operations = {
        name: cost.forward_flops(
            rows[name].model, vocab_size=0, rows=1, source=25, target=25
        )
        for name in names
    }
    spread = max(operations.values()) / min(operations.values()) - 1
    return Claim(
        id="cost-of-heads",
        section="3.2.2",
        text="heads of d_model / h dimensions cost as much in total as one head of all",
        verdict=verdict_of(spread < 0.01),
        basis="computation",
        because=(
            "the matrix products of table 3's rows with 1, 4, 8, 16 and 32 heads need "
            f"the same operations, to {spread:.1%}"
        ),
        command=REPORT,
        figures=operations,
    )


def _wavelengths(base: config.Config) -> Claim:
    d_model = base.model.d_model
    # Of the module: the angle of each sine at position 1, so small that it is its own
    # sine after the first few dimensions.
    first = np.asarray(
        positional_encoding.sinusoids(jnp.arange(2), d_model=d_model), np.float64
    )[1]
    angles = np.arctan2(first[0::2], first[1::2])
    wavelengths = 1 / angles  # in units of 2 pi
    ratios = wavelengths[1:] / wavelengths[:-1]
    is_geometric = bool(np.ptp(ratios) < 1e-5 * ratios[0])
    last = float(wavelengths[-1])
    is_so = is_geometric and abs(wavelengths[0] - 1) < 1e-6 and 0.9e4 < last < 1e4
    return Claim(
        id="wavelengths",
        section="3.5",
        text="the wavelengths form a geometric progression from 2 pi to 10000 x 2 pi",
        verdict=verdict_of(is_so),
        basis="computation",
        because=(
            f"from 1 to {last:,.0f} times 2 pi at d_model = {d_model}, each "
            f"{ratios[0]:.4f} times the one before; 10,000 is the limit, not the last"
        ),
        command=REPORT,
        figures={"first": float(wavelengths[0]), "last": last},
    )


def _offsets(base: config.Config) -> Claim:
    d_model, length = base.model.d_model, 200
    encodings = np.asarray(
        positional_encoding.sinusoids(jnp.arange(length), d_model=d_model), np.float64
    )
    sine, cosine = encodings[:, 0::2], encodings[:, 1::2]
    error = 0.0
    for k in OFFSETS:
        # A rotation by PE(k) in each plane of a sine and its cosine.
        shifted_sine = sine[:-k] * cosine[k] + cosine[:-k] * sine[k]
        turned = cosine[:-k] * cosine[k] - sine[:-k] * sine[k]
        error = max(error, float(abs(shifted_sine - sine[k:]).max()))
        error = max(error, float(abs(turned - cosine[k:]).max()))
    return Claim(
        id="offsets",
        section="3.5",
        text="PE(pos + k) is a linear function of PE(pos) for any fixed offset k",
        verdict=verdict_of(error < length * 2**-23),
        basis="computation",
        because=(
            f"rotations by PE(k) give PE(pos + k) for k = "
            f"{', '.join(map(str, OFFSETS))}, as far as float32 goes"
        ),
        command=REPORT,
        figures={"error": error},
    )


def _sequential_operations(costs: Costs) -> Claim:
    is_so = all(
        costs.steps[layer.name][index] == layer.sequential_operations(n=n)
        for layer in table1.LAYER_TYPES
        for index, n in enumerate(costs.lengths)
    )
    recurrent = costs.steps[table1.RECURRENT.name]
    return Claim(
        id="sequential-operations",
        section="4",
        text="self-attention and convolutions need O(1) sequential operations, "
        "recurrence O(n)",
        verdict=verdict_of(is_so),
        basis="computation",
        because=(
            "counted in the programs: 1, and "
            f"{', '.join(f'{steps:,}' for steps in recurrent)} for an LSTM over "
            f"{', '.join(f'{n:,}' for n in costs.lengths)} positions"
        ),
        command=REPORT,
        figures={
            f"recurrent, n = {n}": float(steps)
            for n, steps in zip(costs.lengths, recurrent, strict=True)
        },
    )


def _faster_than_recurrence(costs: Costs) -> Claim:
    attention = costs.seconds[table1.SELF_ATTENTION.name]
    recurrence = costs.seconds[table1.RECURRENT.name]
    ratios = {
        n: recurrence[index] / attention[index]
        for index, n in enumerate(costs.lengths)
        if n < costs.d
    }
    words = ", ".join(f"{ratio:.1f} (n = {n})" for n, ratio in ratios.items())
    return Claim(
        id="faster-than-recurrence",
        section="4",
        text="self-attention is faster than recurrence where n < d",
        verdict=verdict_of(min(ratios.values()) > 1) if ratios else "not run",
        basis="timing" if ratios else "nothing",
        because=(
            "seconds of recurrence divided by those of self-attention, for "
            f"{plurals.format_count(costs.rows, 'sentence')} at d = {costs.d}: {words}"
            if ratios
            else f"no length below d = {costs.d} was timed"
        ),
        command="vaswani report --lengths=64,128,256",
        figures={f"n = {n}": ratio for n, ratio in ratios.items()},
    )


def _hours(systems: Mapping[SystemName, config.Config]) -> Claim:
    hours = {
        size: systems[size, "de"].training.num_steps * seconds / 3600
        for size, seconds in STEP_SECONDS.items()
    }
    is_so = all(
        abs(hours[size] / printed.HOURS[size] - 1) < 0.1 for size in STEP_SECONDS
    )
    return Claim(
        id="hours",
        section="5.2",
        text="100,000 steps of 0.4 s take 12 hours, 300,000 of 1.0 s 3.5 days",
        verdict=verdict_of(is_so),
        basis="computation",
        because=f"{hours['base']:.1f} hours, and {hours['big'] / 24:.2f} days",
        command=REPORT,
        figures=hours,
    )


def _parameters(rows: Mapping[str, config.Config]) -> Claim:
    ranges = {
        row: cost.implied_vocabulary(rows[row].model, variation.parameters)
        for row, variation in printed.TABLE3.items()
        if variation.parameters
    }
    smallest = max(low for low, _ in ranges.values())
    largest = min(high for _, high in ranges.values())
    millions = {
        row: cost.count_parameters(
            rows[row].model, vocab_size=rows[row].data.planned_vocab_size
        )
        / 1e6
        for row in ("base", "big")
    }
    return Claim(
        id="parameters",
        section="6.2",
        text="base has 65 million parameters, big 213, with one shared vocabulary of "
        "about 37,000",
        verdict=verdict_of(smallest <= largest),
        basis="computation",
        because=(
            f"V = 37,000 gives {millions['base']:.1f} and {millions['big']:.1f}; no V "
            "gives all counts of table 3"
        ),
        command=REPORT,
        figures=millions,
    )
