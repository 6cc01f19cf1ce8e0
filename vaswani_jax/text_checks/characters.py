"""Find wrong characters, and text whose form is not that of the settings."""

import dataclasses
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

from vaswani_jax.core import config, types
from vaswani_jax.data import encodings
from vaswani_jax.text_checks import findings, sides
from vaswani_jax.text_checks.findings import Example, Finding, Severity
from vaswani_jax.text_checks.sample import Block, numbered

ENTITY = re.compile(r"&(?:[a-z]{2,6}|#\d{2,5}|#x[0-9a-f]{2,4}) ?;", re.IGNORECASE)
# A full stop or a comma, also of Chinese and Japanese: after a space, as tokenisers
# write it, and after a word.
TOKENIZED = re.compile(r"\w [.,\u3002\u3001\uff0c\uff0e](?: |$)")
DETOKENIZED = re.compile(r"\w[.,\u3002\u3001\uff0c\uff0e](?: |$)")
# Marks of BPE and of SentencePiece that no decoder has removed.
SUBWORDS = re.compile(r"@@ |\u2581")
FAULTS = {"minor": 0.001, "serious": 0.1}
COMMON = {"minor": 0.01, "serious": 0.5}
# Shares of lines that make one form the usual one, and the other one rare.
USUAL, RARE = 0.3, 0.02
MIN_LINES = 50


@dataclasses.dataclass(frozen=True)
class _Fault:
    kind: str
    message: str
    remedy: str
    find: Callable[[str], int]
    limits: dict[str, float]


# Each returns the index of the fault in a line; -1 if there is none.


def _broken(line: str) -> int:
    index = line.find(encodings.REPLACEMENT)
    if index >= 0 or not (broken := encodings.mojibake(line)):
        return index
    return line.find(broken)


def _control(line: str) -> int:
    controls = encodings.control_characters(line)
    return line.find(controls[0]) if controls else -1


def _decomposed(line: str) -> int:
    if line.isascii() or unicodedata.is_normalized("NFC", line):
        return -1
    return next((n for n, c in enumerate(line) if unicodedata.combining(c)), 0)


def _match(pattern: re.Pattern[str]) -> Callable[[str], int]:
    def find(line: str) -> int:
        match = pattern.search(line)
        return match.start() if match else -1

    return find


_FAULTS = (
    _Fault(
        "broken_encoding",
        "were read in a wrong encoding (as Ã¼ for ü) or have lost characters (U+FFFD)",
        "write the file again from text in the right encoding",
        _broken,
        FAULTS,
    ),
    _Fault(
        "control_characters",
        "have control characters",
        "remove these characters (Unicode's categories Cc and Co)",
        _control,
        FAULTS,
    ),
    _Fault(
        "entities",
        "have entities of HTML, such as &quot;",
        "write the characters that they stand for (Python's html.unescape)",
        _match(ENTITY),
        FAULTS | {"serious": 2.0},
    ),
    _Fault(
        "subword_marks",
        "have marks of subwords (@@ or ▁): they are segmented already",
        "join the subwords to words",
        _match(SUBWORDS),
        COMMON,
    ),
    _Fault(
        "decomposed",
        "have letters with separate accents (not in Unicode's form NFC)",
        "--config.data.normalization=nfkc",
        _decomposed,
        COMMON | {"serious": 2.0},
    ),
)


@dataclasses.dataclass(frozen=True)
class Forms:
    """Shares of a side's lines that have a form.

    Attributes:
        num_lines: How many lines have letters.
        capitals: The share with a capital letter; None in scripts without.
        tokenized: The share with a stop or a comma after a space.
        detokenized: The share with one right after a word.
    """

    num_lines: int
    capitals: float | None
    tokenized: float
    detokenized: float


def measure(blocks: Sequence[Block]) -> dict[str, dict[str, Any]]:
    """Return the scripts and the number of characters of each side."""
    measures = {}
    for side, name in enumerate(types.SIDES):
        lines = (pair[side] for _, pair in numbered(blocks))
        characters = sides.count_characters(lines)
        letters = sides.count_scripts(characters)
        total = letters.total()
        measures[name] = {
            "characters": len(characters),
            "scripts": {
                script: round(count / total, 6)
                for script, count in letters.most_common()
            },
        }
    return measures


def find_faults(
    blocks: Sequence[Block], *, data: config.DataConfig, split: str
) -> list[Finding]:
    """Return a finding for each kind of characters that should not be there."""
    lines = numbered(blocks)
    result = []
    for side, name in enumerate(types.SIDES):
        for fault in _FAULTS:
            if not _applies(fault.kind, data):
                continue
            bad = [
                (number, pair[side], index)
                for number, pair in lines
                if (index := fault.find(pair[side])) >= 0
            ]
            share = len(bad) / max(1, len(lines))
            severity = findings.severity_of(share, **fault.limits)
            if not severity:
                continue
            result.append(
                Finding(
                    kind=fault.kind,
                    severity=severity,
                    split=split,
                    message=f"{findings.percent(share)} of the {name} lines "
                    + fault.message,
                    share=share,
                    remedies=[fault.remedy],
                    examples=[
                        Example(number, findings.shorten(line, center=index), side=name)
                        for number, line, index in bad[: findings.NUM_EXAMPLES]
                    ],
                )
            )
    return result


def _applies(kind: str, data: config.DataConfig) -> bool:
    if kind == "decomposed":  # SentencePiece composes them.
        return data.normalization == "identity"
    # Moses' tokeniser writes entities.
    return kind != "entities" or data.text_form != "tokenized"


def forms(blocks: Sequence[Block]) -> list[Forms]:
    """Return the forms of source and target."""
    result = []
    for side in range(len(types.SIDES)):
        lines = [pair[side] for _, pair in numbered(blocks)]
        lines = [line for line in lines if any(map(str.isalpha, line))]
        total = max(1, len(lines))
        # Text without case has letters of other scripts, too: names, acronyms. Georgian
        # has capitals, but begins neither names nor sentences with them.
        letters = [
            letter for line in lines[:1000] for letter in line if letter.isalpha()
        ]
        has_case = 2 * sum(a.lower() != a.title() for a in letters) > len(letters)
        capitals = sum(line != line.lower() for line in lines) / total
        result.append(
            Forms(
                len(lines),
                capitals if has_case else None,
                sum(bool(TOKENIZED.search(line)) for line in lines) / total,
                sum(bool(DETOKENIZED.search(line)) for line in lines) / total,
            )
        )
    return result


def mix_forms(texts: Sequence[Sequence[Forms]], weights: Sequence[int]) -> list[Forms]:
    """Return the forms of source and target of several texts together.

    Args:
        texts: The forms of source and target of each text.
        weights: The number of pairs of each.
    """
    if len(texts) == 1:
        return list(texts[0])
    return [
        Forms(
            sum(text[side].num_lines for text in texts),
            _mean([text[side].capitals for text in texts], weights),
            _mean([text[side].tokenized for text in texts], weights) or 0.0,
            _mean([text[side].detokenized for text in texts], weights) or 0.0,
        )
        for side in range(len(types.SIDES))
    ]


def _mean(shares: Sequence[float | None], weights: Sequence[int]) -> float | None:
    """Return the weighted mean of the shares that are known; None if none is."""
    terms = [
        (share, weight)
        for share, weight in zip(shares, weights, strict=True)
        if share is not None
    ]
    total = sum(weight for _, weight in terms)
    return sum(share * weight for share, weight in terms) / total if total else None


def find_form(both_sides: Sequence[Forms], *, data: config.DataConfig) -> list[Finding]:
    """Return a finding if `data.text_form` is not the form of the training text."""
    names = [
        name
        for name, side in zip(types.SIDES, both_sides, strict=True)
        if side.num_lines >= MIN_LINES
        and _has_other_form(side, is_tokenized=data.text_form == "tokenized")
    ]
    if not names:
        return []
    form = "detokenized" if data.text_form == "tokenized" else "tokenized"
    return [
        Finding(
            kind="text_form",
            severity=Severity.MINOR,
            split="train",
            message=(
                f"the {' and '.join(names)} lines are {form}, but "
                f"config.data.text_form={data.text_form}: this changes BLEU"
            ),
            share=1.0,
            remedies=[f"--config.data.text_form={form}"],
        )
    ]


def _has_other_form(side: Forms, *, is_tokenized: bool) -> bool:
    if is_tokenized:
        return side.detokenized > USUAL and side.tokenized < RARE
    return side.tokenized > USUAL and side.detokenized < side.tokenized / 2


def find_unlike_forms(
    train: Sequence[Forms], held_out: Sequence[Forms], *, split: str
) -> list[Finding]:
    """Return a finding for each form in which held-out text differs from training."""
    result = []
    for name, trained, other in zip(types.SIDES, train, held_out, strict=True):
        if min(trained.num_lines, other.num_lines) < MIN_LINES:
            continue
        unlike = []
        if trained.capitals is not None and other.capitals is not None:
            unlike.append(("lower-cased", -trained.capitals, -other.capitals))
        unlike.append(("tokenized", trained.tokenized, other.tokenized))
        for form, trained_share, share in unlike:
            low, high = sorted(map(abs, (trained_share, share)))
            if high < USUAL or low > RARE:
                continue
            is_held_out = share > trained_share
            which, whose = types.SPLIT_NAMES[split], types.SPLIT_NAMES["train"]
            if not is_held_out:
                which, whose = whose, which
            result.append(
                Finding(
                    kind="unlike_forms",
                    severity=Severity.SERIOUS,
                    split=split,
                    message=(
                        f"the {name} lines of the {which} text are {form}, those of "
                        f"the {whose} text are not"
                    ),
                    share=1.0,
                    remedies=["bring both texts into the same form"],
                )
            )
    return result
