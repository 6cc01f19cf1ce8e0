"""Figures 3 to 5: what the paper's showed, and whether the heads of a run show it."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vaswani_jax.core import locales
from vaswani_jax.inference import alignment
from vaswani_jax.inference.translator import Translator
from vaswani_jax.paper.claim import Claim, Verdict
from vaswani_jax.paper.scored_runs import ScoredRun
from vaswani_jax.plots import attention_layer
from vaswani_jax.plots.attention_layer import Layer

NUM_LAYERS = 6
NUMBERS = (3, 4, 5)
# What the captions say of the paper's model.
SHOWN = {
    3: "many heads of layer 5 of 6 look from a verb to its distant complement",
    4: "two heads of layer 5 of 6 resolve a pronoun, and sharply",
    5: "heads of layer 5 of 6 do different tasks, of the sentence's structure",
}
# Where the paper's heads look from "making" and from "its".
COMPLEMENT = ("more", "difficult")
ANTECEDENTS = ("Law", "application")
# Times the weight of a head that looks at all subwords alike.
CLEARLY_MORE = 2.0
SHARP = 0.5  # the least weight of a head that looks sharply
DIFFERENT = 0.5  # the least distance of heads that do different tasks, at most 1
SCOPE = (
    "Each verdict is of a small model that reads one sentence, the paper's; it says "
    "nothing of the heads of the paper's model."
)
RULES = (
    f"A head looks clearly at the complement with {CLEARLY_MORE:g} times the weight of "
    "uniform attention. Figure 3 holds if half of the heads do so, in part if any "
    f"does. Figure 4 holds if both heads give a right word at least {SHARP:g}, in part "
    f"if one does. Figure 5 holds in part if two heads differ by {DIFFERENT:g} or more."
)
SOURCES = ("text", "tfds:")
TRAINING = "vaswani train multi30k_ende:six_layers"


@dataclasses.dataclass(frozen=True)
class ShownRun:
    """The run that the figures show, and its model."""

    run: ScoredRun
    translator: Translator


@dataclasses.dataclass(frozen=True)
class Heads:
    """The layer of each figure, of one run.

    Attributes:
        run: The run.
        layers: The layer over the sentence of each of `NUMBERS`.
    """

    run: ScoredRun
    layers: Mapping[int, Layer]


def find_runs(runs: Sequence[ScoredRun]) -> list[ScoredRun]:
    """Return the runs whose heads can be shown, the first choice first.

    They have an encoder of six layers with several heads, read English sentences, and
    still have their averaged checkpoint. One without a flaw comes first, then one with
    BLEU, then the best score on its validation set, then the newest.
    """
    return sorted(
        filter(_may_be_shown, runs),
        key=lambda run: (not run.flaw, run.has_bleu, run.score, run.time),
        reverse=True,
    )


def _may_be_shown(run: ScoredRun) -> bool:
    settings = run.settings
    depth = settings.get("model.num_encoder_layers") or settings["model.num_layers"]
    return (
        depth == NUM_LAYERS
        and settings["model.num_heads"] > 1  # Figure 4 shows two heads.
        and settings["data.source"].startswith(SOURCES)
        and locales.language_code(settings["data.source_locale"]) == "en"
        and (run.record["split"], run.record["checkpoint"]) == ("valid", "averaged")
        and (run.workdir / "averaged").is_dir()
    )


def read_heads(shown: ShownRun) -> Heads:
    """Return the heads of a run over the paper's sentences, in the last layer but one.

    Args:
        shown: One of `find_runs`.
    """
    layers, translator = {}, shown.translator
    for number in NUMBERS:
        sentence = attention_layer.paper_sentence(number, translator)
        attention = attention_layer.attend(translator, sentence)
        layer = alignment.default_layer(len(attention.encoder))
        layers[number] = attention_layer.read_layer(attention, layer, by_word=True)
    return Heads(shown.run, layers)


def judge(heads: Heads | None, *, failures: Sequence[str] = ()) -> list[Claim]:
    """Return the verdict on each figure, from the weights of a run's heads.

    Args:
        heads: The heads of a run; None if no run can show them.
        failures: Why better runs could not be read.
    """
    if heads is None:
        because = (
            "no run has six encoder layers and reads English: train one by "
            f"`{TRAINING}`"
        )
        if failures:
            because = f"no run can be read: {'; '.join(failures)}"
        return [
            Claim(
                **_words(number),
                verdict="not run",
                basis="nothing",
                because=because,
                command=f"vaswani plot RUN --figure={number}",
            )
            for number in NUMBERS
        ]
    judges = {3: _judge_figure3, 4: _judge_figure4, 5: _judge_figure5}
    workdir = str(heads.run.workdir)
    claims = []
    for number, judge_figure in judges.items():
        verdict, because, figures = judge_figure(heads.layers[number])
        claims.append(
            Claim(
                **_words(number),
                verdict=verdict,
                basis="training",
                because=because,
                command=shlex.join(["vaswani", "plot", workdir, f"--figure={number}"]),
                figures=figures,
                scale="small",
                runs=(workdir,),
                commits=heads.run.revisions,
            )
        )
    return claims


def _words(number: int) -> dict[str, Any]:
    return {"id": f"figure-{number}", "section": "figures", "text": SHOWN[number]}


Judgement = tuple[Verdict, str, dict[str, float]]


def _judge_figure3(layer: Layer) -> Judgement:
    """Judge how much heads look from the verb to its complement."""
    word = attention_layer.WORDS[3]
    verb = attention_layer.find_token(layer, word)
    complement = [attention_layer.find_token(layer, text) for text in COMPLEMENT]
    shares = layer.weights[:, verb, complement].sum(axis=-1)
    chance = float(layer.uniform[complement].sum())
    most = int(shares.argmax())
    num_clear, H = int((shares >= CLEARLY_MORE * chance).sum()), len(shares)
    because = (
        f"{num_clear} of {H} heads give “{COMPLEMENT[0]}” and “{COMPLEMENT[1]}” at "
        f"least {CLEARLY_MORE:g} times the weight from “{word}” that uniform "
        f"attention gives ({chance:.2f}); head {most + 1} gives most, "
        f"{shares[most]:.2f}"
    )
    figures = {f"head {n + 1}": float(share) for n, share in enumerate(shares)}
    verdict = _verdict(num_clear, enough=-(-H // 2))
    return verdict, because, {**figures, "uniform": chance}


def _judge_figure4(layer: Layer) -> Judgement:
    """Judge how sharply heads look from the pronoun to what it means."""
    word = attention_layer.WORDS[4]
    pronoun = attention_layer.find_token(layer, word)
    antecedents = [attention_layer.find_token(layer, text) for text in ANTECEDENTS]
    largest = attention_layer.largest_weights(layer, pronoun)
    parts, figures, num_resolving = [], {}, 0
    for head in attention_layer.sharpest_heads(layer, pronoun):
        row = layer.weights[head - 1, pronoun].copy()
        row[[pronoun, -1]] = 0
        looked_at, weight = int(row.argmax()), float(largest[head - 1])
        num_resolving += looked_at in antecedents and weight >= SHARP
        parts.append(f"head {head} gives “{layer.tokens[looked_at]}” {weight:.2f}")
        figures[f"head {head}"] = weight
    because = (
        f"from “{word}”, the two sharpest heads: {', '.join(parts)}; {num_resolving} "
        f"of them look at “{ANTECEDENTS[0]}” or “{ANTECEDENTS[1]}” with at least "
        f"{SHARP:g}"
    )
    return _verdict(num_resolving, enough=2), because, figures


def _judge_figure5(layer: Layer) -> Judgement:
    """Judge how much the two heads that differ most differ."""
    first, second = attention_layer.most_different_heads(layer)
    distances = attention_layer.differences(layer)
    distance = float(distances[first - 1, second - 1])
    pairs = distances[np.triu_indices(len(distances), k=1)]
    because = (
        f"heads {first} and {second} differ most, by {distance:.2f} of at most 1 "
        f"(all pairs: {pairs.mean():.2f} on average; {DIFFERENT:g} counts as "
        "different); whether of the sentence's structure is not measured"
    )
    # Different tasks are a part of the claim.
    verdict: Verdict = "holds in part" if distance >= DIFFERENT else "does not hold"
    return verdict, because, {"distance": distance, "mean": float(pairs.mean())}


def _verdict(count: int, *, enough: int) -> Verdict:
    if count >= enough:
        return "holds"
    return "holds in part" if count else "does not hold"


def format_figures(claims: Sequence[Claim]) -> str:
    """Return figures 3 to 5 with the verdicts as Markdown.

    Args:
        claims: Those of `judge`.
    """
    is_judged = any(claim.verdict != "not run" for claim in claims)
    parts = [f"{SCOPE} {RULES}"] if is_judged else []
    for number, claim in zip(NUMBERS, claims, strict=True):
        text = f"Figure {number}. The paper's: {claim.text}. "
        if claim.verdict == "not run":
            parts.append(f"{text}Ours: not run: {claim.because}")
            continue
        [workdir] = claim.runs
        parts.append(
            f"{text}Ours ({workdir}): {claim.verdict}: {claim.because}.\n\n"
            f"![figure {number}](figure{number}.png)"
        )
    return "\n\n".join(parts)
