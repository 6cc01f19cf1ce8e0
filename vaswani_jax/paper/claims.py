"""Every claim of the paper, with the verdict that runs and computations give.

A claim about training is judged by scored runs with the paper's settings. Conclusions
from table 3 are judged by its rows at a smaller scale where the paper's were not run.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vaswani_jax.core import config
from vaswani_jax.paper import (
    attention_figures,
    computed_claims,
    markdown,
    printed,
    scored_runs,
    small_table3,
    table4,
    tables,
)
from vaswani_jax.paper.claim import Claim, Verdict, verdict_of
from vaswani_jax.paper.presets import SystemName
from vaswani_jax.paper.printed import Conclusion
from vaswani_jax.paper.scored_runs import ScoredRun
from vaswani_jax.paper.table1 import Costs

RowSettings = Mapping[str, config.Config]
SECTIONS = tuple("abstract 1 3.2.1 3.2.2 3.5 4 5.2 5.4 6.1 6.2 6.3 7 figures".split())
NO_WMT14 = "training on WMT14 needs days on eight GPUs"
NO_P100 = "needs eight P100 GPUs"
NO_WSJ = "the treebank is licensed by the LDC (LDC99T42)"
MARGIN = 2.0  # BLEU that the big model leads by, abstract
# A difference of accuracy up to this counts as none where the base model was run with
# one seed: chosen, not measured.
CHOSEN_ACCURACY_NOISE = 0.005


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The settings, runs and figures that claims are judged by.

    Attributes:
        systems: The settings of table 2's systems.
        rows: Those of table 3's rows.
        small_rows: Those of the same rows at a smaller scale.
        runs: Scored runs.
        costs: Table 1, counted and timed.
        heads: What figures 3 to 5 show; None without a run that has it.
        head_failures: Why better runs could not be read.
    """

    systems: Mapping[SystemName, config.Config]
    rows: Mapping[str, config.Config]
    small_rows: Mapping[str, config.Config]
    runs: Sequence[ScoredRun]
    costs: Costs
    heads: attention_figures.Heads | None = None
    head_failures: Sequence[str] = ()


def judge(evidence: Evidence) -> list[Claim]:
    """Return every claim with its verdict, in the paper's order."""
    claims = [
        *_translation(evidence),
        *computed_claims.judge(evidence.systems, evidence.rows, evidence.costs),
        *_conclusions(evidence),
        _smoothed_accuracy(evidence),
        *_parsing(evidence.runs),
        *_not_run(),
        *attention_figures.judge(evidence.heads, failures=evidence.head_failures),
    ]
    return sorted(claims, key=lambda claim: SECTIONS.index(claim.section))


def format_table(claims: Sequence[Claim]) -> str:
    """Return the claims as Markdown."""
    head = ["section", "claim", "verdict", "by", "because"]
    return markdown.table(
        head,
        [
            [claim.section, claim.text, claim.verdict, claim.basis, claim.because]
            for claim in claims
        ],
    )


def to_json(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """Return the claims as JSON has them."""
    return [
        dataclasses.asdict(claim)
        | {"runs": list(claim.runs), "commits": list(claim.commits)}
        for claim in claims
    ]


def _commits(runs: Sequence[ScoredRun]) -> tuple[str, ...]:
    """Return the revisions that recorded the runs' starts, where they are known."""
    return tuple(sorted({revision for run in runs for revision in run.revisions}))


def _translation(evidence: Evidence) -> Iterator[Claim]:
    *models, base, big = printed.TABLE2
    earlier = [
        max(bleu for bleu in column if bleu)
        for column in zip(*(model.bleu for model in models), strict=True)
    ]
    single = max(
        model.bleu[1] or 0.0 for model in models if "Ensemble" not in model.name
    )
    yield _score(
        evidence,
        ("big", "de"),
        id="big-ende",
        section="abstract",
        text=f"big has {big.bleu[0]} BLEU on newstest2014 En-De",
        least=(big.bleu[0] or 0.0) - tables.BLEU_TOLERANCE,
    )
    yield _score(
        evidence,
        ("big", "de"),
        id="margin-ende",
        section="abstract",
        text=f"that is over {MARGIN:.0f} BLEU above all earlier results, ensembles "
        f"included (at most {earlier[0]})",
        least=earlier[0] + MARGIN,
    )
    yield _score(
        evidence,
        ("big", "fr"),
        id="big-enfr",
        section="abstract",
        text=f"big has {big.bleu[1]} BLEU on newstest2014 En-Fr, the best of a single "
        f"model (at most {single} before)",
        least=(big.bleu[1] or 0.0) - tables.BLEU_TOLERANCE,
    )
    for language, name, bleu in (("de", "En-De", 0), ("fr", "En-Fr", 1)):
        score = base.bleu[bleu] or 0.0
        words = f"base has {score} BLEU on {name}"
        if language == "de":
            words += ", above all earlier models and ensembles"
        yield _score(
            evidence,
            ("base", language),
            id=f"base-en{language}",
            section="6.1",
            text=words,
            least=score - tables.BLEU_TOLERANCE,
        )


def _score(
    evidence: Evidence, system: SystemName, *, least: float, **words: Any
) -> Claim:
    """Return the verdict on a claim that a system has so much BLEU."""
    size, language = system
    command = f"vaswani train {size}_en{language}"
    run = scored_runs.find_run(evidence.runs, evidence.systems[system], split="test")
    if run is None or run.flaw:
        because = NO_WMT14 if run is None else run.source
        return _unjudged(**words, because=because, command=command)
    return Claim(
        **words,
        verdict=verdict_of(run.score >= least),
        basis="training",
        because=f"{run.score:.2f} ({run.metric})",
        command=command,
        figures={"bleu": run.score, "least": least},
        runs=(str(run.workdir),),
        commits=_commits([run]),
    )


def _unjudged(**words: Any) -> Claim:
    return Claim(**words, verdict="not run", basis="nothing")


def _conclusions(evidence: Evidence) -> Iterator[Claim]:
    """Judge what the text concludes from table 3, by each figure."""
    measurements = []
    for scale, command, rows in _scales(evidence):
        run_by_row = scored_runs.find_rows(evidence.runs, rows)
        seeds = scored_runs.find_seeds(evidence.runs, rows["base"], split="valid")
        measurements.append((scale, command, run_by_row, seeds))
    for printed_conclusion in printed.CONCLUSIONS:
        for figure in printed_conclusion.figures:
            conclusion = dataclasses.replace(printed_conclusion, figures=(figure,))
            judgements = (_conclude(conclusion, *parts) for parts in measurements)
            at_paper_scale, smaller = judgements
            is_run = at_paper_scale.verdict != "not run"
            yield at_paper_scale if is_run else smaller


def _scales(evidence: Evidence) -> tuple[tuple[str, str, RowSettings], ...]:
    """Return the paper's scale and the small one: its name, its command, its rows."""
    return (
        ("", "launch/table3.sh", evidence.rows),
        (
            "small",
            "launch/table3.sh configs/table3_small.py runs "
            "--config.data.text_directory=DIR/lc_norm_tok",
            evidence.small_rows,
        ),
    )


def _smoothed_accuracy(evidence: Evidence) -> Claim:
    """Judge label smoothing by accuracy, which the text names and no table prints."""
    words = {
        "id": "label-smoothing-improves-accuracy",
        "section": "5.4",
        "text": "label smoothing improves accuracy",
    }
    for scale, command, rows in _scales(evidence):
        pair = {row: rows[row] for row in ("base", "D3")}
        run_by_row = scored_runs.find_rows(evidence.runs, pair)
        seeds = scored_runs.find_seeds(evidence.runs, rows["base"], split="valid")
        runs = [run for run in run_by_row.values() if run]
        runs += [run for run in seeds.values() if run not in runs]
        if None in run_by_row.values() or any(
            run.flaw or run.accuracy is None for run in runs
        ):
            continue
        base, unsmoothed, *_ = accuracies = [run.accuracy or 0.0 for run in runs]
        of_seeds = [base, *accuracies[2:]]
        noise = max(of_seeds) - min(of_seeds)
        if len(of_seeds) == 1:
            noise = CHOSEN_ACCURACY_NOISE
        difference = base - unsmoothed
        return Claim(
            **words,
            verdict=_combine(
                [small_table3.conclusion_verdict(difference, noise=noise, same=False)]
            ),
            basis="training",
            because=f"{100 * difference:+.2f} points (base against D3); noise: "
            f"{100 * noise:.2f} points of accuracy",
            command=command,
            scale=scale,
            figures={"base - D3": difference, "noise": noise},
            runs=tuple(str(run.workdir) for run in runs),
            commits=_commits(runs),
        )
    return _unjudged(**words, because="no complete run of base, D3", command=command)


def _conclude(
    conclusion: Conclusion,
    scale: str,
    command: str,
    run_by_row: Mapping[str, ScoredRun | None],
    seeds: Mapping[int, ScoredRun],
) -> Claim:
    [figure] = conclusion.figures
    variations = small_table3.variations(run_by_row)
    noise = small_table3.measure_noise(seeds, base=run_by_row["base"])
    comparisons = small_table3.compare(conclusion, variations, noise)
    name = "BLEU" if figure == "bleu" else figure
    text = conclusion.text
    if name not in text:
        text += f", by {name}"
    words = {
        "id": text.replace(",", "").replace(" ", "-").lower(),
        "section": conclusion.section,
        "text": text,
        "command": command,
    }
    rows = dict.fromkeys(
        row for pair in conclusion.pairs for row in ("base", *pair)
    )  # the unit of perplexity is the base model's
    runs = [run for row in rows if (run := run_by_row.get(row))]
    runs += [run for run in seeds.values() if run not in runs]
    if any(comparison.change is None for comparison in comparisons):
        missing = [row for row in rows if row not in variations]
        return _unjudged(**words, because=f"no complete run of {', '.join(missing)}")
    changes = ", ".join(
        f"{comparison.change:+.2f} ({comparison.better} against {comparison.worse})"
        for comparison in comparisons
    )
    held = sum(comparison.verdict.startswith("holds") for comparison in comparisons)
    if len(comparisons) > 1:
        changes = f"{held} of {len(comparisons)} hold: {changes}"
    bound = (
        f"{noise[figure]:.2f} BLEU"
        if figure == "bleu"
        else f"{noise[figure]:.1%} of perplexity"
    )
    return Claim(
        **words,
        verdict=_combine([comparison.verdict for comparison in comparisons]),
        basis="training",
        because=f"{changes}; noise: {bound}",
        scale=scale,
        figures={
            f"{comparison.better} - {comparison.worse}": comparison.change or 0.0
            for comparison in comparisons
        }
        | {"noise": noise[figure]},
        runs=tuple(str(run.workdir) for run in runs),
        commits=_commits(runs),
    )


def _combine(verdicts: Sequence[str]) -> Verdict:
    """Return the verdict on a conclusion that rests on several pairs of rows.

    >>> _combine(["holds", "holds: no clear difference"])
    'holds'
    >>> _combine(["holds", "no clear difference; the paper's is within the bound"])
    'holds in part'
    """
    if any(verdict.startswith("does not hold") for verdict in verdicts):
        return "does not hold"
    holds = [verdict.startswith("holds") for verdict in verdicts]
    if all(holds):
        return "holds"
    return "holds in part" if any(holds) else "no clear difference"


def _parsing(runs: Sequence[ScoredRun]) -> Iterator[Claim]:
    """Judge table 4's two trainings, and what the abstract concludes from them."""
    claim_by_training = dict(zip(table4.PRINTED, _f1_claims(runs), strict=True))
    yield from claim_by_training.values()
    yield _generalisation(claim_by_training)


def _f1_claims(runs: Sequence[ScoredRun]) -> Iterator[Claim]:
    """Judge table 4 by the runs on the paper's treebank."""
    best_earlier = {
        training: max(
            parser.f1
            for parser in printed.TABLE4
            if parser.training.startswith(training)
            and parser.name not in (table4.TRANSFORMER, "Dyer et al. (2016)")
        )
        for training in table4.PRINTED
    }
    exception = {"WSJ only": " but Dyer et al.'s"}  # its 93.3 is "generative"
    for training, command in zip(
        table4.PRINTED,
        ("vaswani train parsing_wsj", "vaswani train parsing_wsj:semi"),
        strict=True,
    ):
        f1 = table4.PRINTED[training]
        name = "wsj-only" if training == "WSJ only" else training
        words = {
            "id": f"f1-{name}",
            "section": "6.3",
            "text": f"four layers have {f1} F1 on section 23 ({training}), more than "
            f"all earlier parsers so trained ({best_earlier[training]})"
            f"{exception.get(training, '')}",
            "command": command,
        }
        result = table4.find_result(runs, training)
        if result is None:
            yield _unjudged(**words, because=NO_WSJ)
            continue
        yield Claim(
            **words,
            verdict=verdict_of(result.f1 >= f1 - table4.F1_TOLERANCE),
            basis="training",
            because=f"{result.f1:.2f} F1",
            figures={"f1": result.f1},
            runs=tuple(str(run.workdir) for run in result.runs),
            commits=_commits(result.runs),
        )


def _generalisation(claim_by_training: Mapping[str, Claim]) -> Claim:
    """Judge the abstract's claim on parsing: it needs both trainings."""
    words = {
        "id": "parsing",
        "section": "abstract",
        "text": "the model generalises to parsing, with much and with little training "
        "text",
        "command": "vaswani train parsing_wsj",
    }
    judged_claims = {
        training: claim
        for training, claim in claim_by_training.items()
        if claim.verdict != "not run"
    }
    if not judged_claims:
        return _unjudged(**words, because=NO_WSJ)
    num_holding = sum(claim.verdict == "holds" for claim in judged_claims.values())
    verdict: Verdict = "holds in part" if num_holding else "does not hold"
    if num_holding == len(claim_by_training):
        verdict = "holds"
    revisions = {
        revision for claim in judged_claims.values() for revision in claim.commits
    }
    figures = ", ".join(
        f"{claim.because if training in judged_claims else claim.verdict} ({training})"
        for training, claim in claim_by_training.items()
    )
    return Claim(
        **words,
        verdict=verdict,
        basis="training",
        because=f"{num_holding} of {len(claim_by_training)} hold: {figures}",
        figures={
            training: claim.figures["f1"] for training, claim in judged_claims.items()
        },
        runs=tuple(run for claim in judged_claims.values() for run in claim.runs),
        commits=tuple(sorted(revisions)),
    )


def _not_run() -> Iterator[Claim]:
    yield _unjudged(
        id="twelve-hours",
        section="1",
        text="twelve hours on eight P100 GPUs give the best translations of the time",
        because=NO_P100,
        command="vaswani train base_ende",
    )
    yield _unjudged(
        id="faster-than-additive",
        section="3.2.1",
        text="dot-product attention is faster and smaller than additive attention, "
        "which does better for large d_k if the products are not scaled",
        because="additive attention is not in this code",
        command="",
    )
    yield _unjudged(
        id="longer-sequences",
        section="3.5",
        text="sinusoids may let a model read longer sequences than those of training",
        because="a conjecture, which the paper does not test",
        command="",
    )
    yield _unjudged(
        id="step-seconds",
        section="5.2",
        text="a step takes 0.4 s (base) or 1.0 s (big) on eight P100 GPUs",
        because=NO_P100,
        command="vaswani benchmark train base_ende --shape=784x32x32",
    )
    yield _unjudged(
        id="trains-faster",
        section="7",
        text="for translation, it trains faster than recurrent or convolutional "
        "architectures",
        because="translators of the other architectures are not in this code, only "
        "single layers (table 1)",
        command="",
    )
