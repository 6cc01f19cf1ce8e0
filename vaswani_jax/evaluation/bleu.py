"""BLEU and chrF as sacreBLEU computes them, and BLEU as the authors computed table 2's.

Every score carries a signature that says how it was computed.
"""

import dataclasses
import functools
import hashlib
import logging
import math
import re
import statistics
from collections.abc import Sequence
from typing import Any, Literal, cast

import sacrebleu

from vaswani_jax.core import locales
from vaswani_jax.core.config import DataConfig

logger = logging.getLogger(__name__)

TextForm = Literal["detokenized", "tokenized"]

# sacreBLEU's tokenisers of text whose words no spaces separate.
WITHOUT_WORDS = ("zh", "char", "ja-mecab")
# Several scores tokenise the same lines, and references are scored again and again.
MAX_TOKENIZED_LINES = 2**14
UNSEGMENTED = (
    "the references are written without spaces, and config.data.text_form=tokenized "
    "takes what is between spaces for words: BLEU has no meaning; set "
    "config.data.text_form=detokenized, or put spaces between the words"
)
# The Perl scripts read bytes, where no-break and other Unicode spaces are no spaces.
TOKEN = re.compile(r"\S+", re.ASCII)
# Characters in place of Python's other spaces, at which sacreBLEU would split.
SPACES_IN_WORDS = str.maketrans(
    {
        character: chr(0xF0000 + ord(character))
        for character in map(chr, range(0x3001))
        if character.isspace() and TOKEN.match(character)
    }
)
COMPOUND = re.compile(rb"(\S)-(\S)")
# Quotes that replace-unicode-punctuation.perl of Moses leaves unchanged.
QUOTES = str.maketrans(dict.fromkeys("„‟«»", '"') | dict.fromkeys("‚‘‛‹›", "'"))


@dataclasses.dataclass(frozen=True)
class Interval:
    """The 95% interval of a score, from a bootstrap over the lines of the text.

    Attributes:
        mean: The mean of the resampled scores.
        half_width: Half the width of the middle 95% of them.
        resamples: How many there are.
        seed: The seed of the generator that drew the lines.
    """

    mean: float
    half_width: float
    resamples: int
    seed: str


@dataclasses.dataclass(frozen=True)
class Score:
    """A score with the signature that makes it comparable.

    Attributes:
        name: `sacrebleu`, `chrf`, `chrf++`, `ter`, `paper_bleu` or `tokenized_bleu`;
            `_split` follows if compounds were split, `_ascii` if quotes and other
            punctuation were replaced by ASCII's, and `_lc` if both sides were
            lower-cased. `ter` ignores case. Trees have the figures of
            `BracketingScore.figures` and `well_formed`. With several target languages
            `mean` comes first, and the others end in their locale, as `sacrebleu[de]`.
        value: From 0 to 100; `ter` may be higher. `crossing` is a number of
            constituents. Of these two, lower is better.
        signature: How it was computed, in the form that sacreBLEU introduced.
        interval: Its 95% interval; None if it was not computed.
    """

    name: str
    value: float
    signature: str
    interval: Interval | None = None


def score_outputs(
    outputs: Sequence[str], references: Sequence[str], *, data: DataConfig
) -> list[Score]:
    """Return all scores of outputs, by the text form and language of the settings.

    Raises:
        ValueError: The numbers of lines differ or are 0.
    """
    return corpus_scores(
        outputs,
        references,
        text_form=cast(TextForm, data.text_form),
        target_language=data.target_locale,
        lowercase=data.lowercase_scores,
    )


def corpus_scores(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    text_form: TextForm,
    target_language: str,
    lowercase: bool,
) -> list[Score]:
    """Return every score that is defined for this form of text and this language.

    Args:
        outputs: One line for each sentence; an empty line counts as an empty output.
        references: As many lines, in the same order and in the same form.
        text_form: `detokenized` gives `sacrebleu`, `chrf` and `paper_bleu`;
            `tokenized` gives only `tokenized_bleu`, because sacreBLEU and chrF are
            defined on plain text, not on `&quot;` and spaces before commas. If no
            spaces separate its words (see `has_words`), it gives only `chrf`.
        target_language: A locale or the code of a language, which chooses the
            tokeniser (see `locales.bleu_tokenizer`). German also gets BLEU with its
            compounds split (see `split_compounds`) and, of detokenized text, with
            ASCII's punctuation as well (see `ascii_punctuation`). Text without spaces
            has no `paper_bleu`: Moses leaves its clauses whole.
        lowercase: Whether all scores ignore case.

    Raises:
        ValueError: The numbers of lines differ or are 0.
    """
    _check_line_counts(outputs, references)
    tokenizer = locales.bleu_tokenizer(target_language, references)
    target_language = locales.language_code(target_language)
    variants = [(False, False)]
    is_unsegmented = text_form == "tokenized" and _is_unsegmented(references)
    if is_unsegmented or (text_form == "detokenized" and tokenizer in WITHOUT_WORDS):
        variants = []
    elif target_language == "de":
        variants.append((True, False))
        if text_form == "detokenized":
            variants.append((True, True))
    multi_bleu_scores = [
        multi_bleu_score(
            outputs,
            references,
            text_form=text_form,
            target_language=target_language,
            compound_split=compound_split,
            to_ascii=to_ascii,
            lowercase=lowercase,
        )
        for compound_split, to_ascii in variants
    ]
    if text_form == "tokenized" and variants:
        return multi_bleu_scores
    metrics: list[tuple[str, str, Any]] = [
        ("sacrebleu", "BLEU", sacrebleu_bleu(tokenizer, lowercase=lowercase)),
        ("chrf", "chrF2", sacrebleu.CHRF(lowercase=lowercase)),
    ]
    if is_unsegmented:  # BLEU would take each line for one word.
        metrics = metrics[1:]
    sacrebleu_scores = [
        Score(
            f"{name}_lc" if lowercase else name,
            metric.corpus_score(outputs, [references]).score,
            f"{metric_name}|{metric.get_signature()}",
        )
        for name, metric_name, metric in metrics
    ]
    return [*sacrebleu_scores, *multi_bleu_scores]


def sacrebleu_bleu(tokenizer: str, *, lowercase: bool) -> sacrebleu.BLEU:
    """Return sacreBLEU's BLEU with one of its tokenisers."""
    # `force` silences a warning that names a parameter of its own; ours is below.
    return sacrebleu.BLEU(lowercase=lowercase, tokenize=tokenizer, force=True)


def explain_tokens(references: Sequence[str], *, data: DataConfig) -> None:
    """Log what a user should know of the tokens that scores count in a text.

    Warns of lines without spaces that the target's locale does not say, of tokenized
    text whose words nothing separates, and of text that looks tokenized. Notes which
    package finds the words of Japanese or Korean.
    """
    key = f"config.data.target_locale={data.target_locale}"
    share = locales.share_without_spaces(references)
    lines = f"{round(share * len(references)):,} of {len(references):,} references"
    if data.text_form == "tokenized":
        if not has_words(references, data=data):
            logger.warning(UNSEGMENTED)
        return
    count = sum(line.endswith(" .") for line in references)
    if 10 * count > len(references):
        logger.warning(
            f"{count:,} of {len(references):,} references end in ' .', as tokenised "
            "text does; if it is tokenised, set config.data.text_form=tokenized"
        )
    tokenizer = locales.bleu_tokenizer(data.target_locale, references)
    if share and locales.has_spaces(data.target_locale):
        consequence = "BLEU takes each line for one word; score these lines separately"
        if tokenizer in WITHOUT_WORDS:
            consequence = (
                "BLEU counts characters, and paper_bleu is left out; train a run with "
                "the text's own target_locale"
            )
        logger.warning(
            f"{lines} have no spaces, but {key} is a language with spaces "
            f"(tok:{tokenizer}): {consequence}"
        )
    language = locales.language_code(data.target_locale)
    name = locales.dictionary_tokenizer(data.target_locale)
    if name and tokenizer != name:
        logger.info(
            f"note: BLEU of {key} has tok:{tokenizer}; other publications have "
            f"tok:{name}, which `pip install 'sacrebleu[{language}]'` gives"
        )


def has_words(references: Sequence[str], *, data: DataConfig) -> bool:
    """Return False for tokenized text whose words no spaces separate."""
    return data.text_form != "tokenized" or not _is_unsegmented(references)


def _is_unsegmented(references: Sequence[str]) -> bool:
    if locales.is_segmented(references):
        return False
    return locales.share_without_spaces(references) > 0.5


def multi_bleu_score(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    text_form: TextForm,
    target_language: str,
    compound_split: bool,
    to_ascii: bool,
    lowercase: bool,
) -> Score:
    """Return BLEU by table 2's steps: Moses tokens, split compounds, multi-bleu.

    The authors name these steps in tensor2tensor#61; their later script,
    get_ende_bleu.sh, replaces punctuation by ASCII's as well (see
    `ascii_punctuation`). Text that is already tokenized skips the first step.

    Raises:
        ValueError: The numbers of lines differ or are 0.
    """
    import sacremoses

    name, tokenizer, version = "tokenized_bleu", "as-given", ""
    if to_ascii:
        outputs = ascii_punctuation(outputs)
        references = ascii_punctuation(references)
    if text_form == "detokenized":
        outputs = tokenize(outputs, target_language)
        references = tokenize(references, target_language)
        name, tokenizer = "paper_bleu", f"moses-{target_language}-escaped"
        version = f"|sacremoses:{sacremoses.__version__}"
    if compound_split:
        outputs = [split_compounds(line) for line in outputs]
        references = [split_compounds(line) for line in references]
        name += "_split"
    name += "_ascii" if to_ascii else ""
    if lowercase:
        # multi-bleu -lc folds only ASCII: "Über" and "über" would differ.
        outputs = [line.lower() for line in outputs]
        references = [line.lower() for line in references]
        name += "_lc"
    signature = words_signature(
        tokenizer=tokenizer,
        compound="ATsplit" if compound_split else "none",
        lowercase=lowercase,
    )
    signature += f"{version}{'|punct:ascii' if to_ascii else ''}"
    return Score(name, multi_bleu(outputs, references), signature)


def multi_bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    """Return BLEU of tokenized lines from 0 to 100, as multi-bleu.perl computes it.

    The geometric mean over the corpus of the clipped precisions of 1- to 4-grams, not
    smoothed, times the brevity penalty. Only ASCII's white space separates words: see
    `join_words`.

    >>> round(multi_bleu(["a b c d"], ["a b c d e"]), 2)  # 100 exp(1 - 5/4)
    77.88

    Raises:
        ValueError: The numbers of lines differ or are 0.
    """
    _check_line_counts(outputs, references)
    scorer = words_bleu(lowercase=False)
    bleu_score = scorer.corpus_score(join_words(outputs), [join_words(references)])
    if 0 in bleu_score.counts:
        return 0.0
    # `bleu_score.score` is 100.00000000000004 for equal texts; this is exactly 100.
    counts = zip(bleu_score.counts, bleu_score.totals, strict=True)
    log_precisions = [math.log(matches / total) for matches, total in counts]
    log_brevity_penalty = min(0.0, 1 - bleu_score.ref_len / bleu_score.sys_len)
    return 100 * math.exp(log_brevity_penalty + statistics.fmean(log_precisions))


def words_bleu(*, lowercase: bool) -> sacrebleu.BLEU:
    """Return sacreBLEU's BLEU of lines from `join_words`, without smoothing."""
    # `force` silences sacreBLEU's warning about tokenised text; `explain_tokens` warns.
    return sacrebleu.BLEU(
        lowercase=lowercase, tokenize="none", smooth_method="none", force=True
    )


def join_words(lines: Sequence[str]) -> list[str]:
    """Return lines in which single spaces separate the words of multi-bleu."""
    return [" ".join(TOKEN.findall(line)).translate(SPACES_IN_WORDS) for line in lines]


def words_signature(
    *, tokenizer: str = "as-given", compound: str = "none", lowercase: bool
) -> str:
    """Return the signature of multi-bleu."""
    case = "lc" if lowercase else "mixed"
    return f"multi-bleu|tok:{tokenizer}|compound:{compound}|case:{case}|smooth:none"


def ascii_punctuation(lines: Sequence[str]) -> list[str]:
    """Return the lines with ASCII's quotes, apostrophes and three dots.

    get_ende_bleu.sh replaces them in the outputs with Moses's
    replace-unicode-punctuation.perl, and the authors' newstest2014 reference has
    straight quotes throughout (tensor2tensor#317). The quotes that the script
    leaves unchanged are replaced here, too.

    >>> ascii_punctuation(["„Ja“, sagte er …"])
    ['"Ja", sagte er ...']
    """
    import sacremoses

    normalizer = sacremoses.MosesPunctNormalizer(pre_replace_unicode_punct=True)
    return [normalizer.replace_unicode_punct(line).translate(QUOTES) for line in lines]


def tokenize(lines: Sequence[str], language: str) -> list[str]:
    """Return the lines with one space between tokens, as tokenizer.perl writes them.

    Quotes and brackets are escaped (`&quot;`), because get_ende_bleu.sh calls the
    script without -no-escape. A language that Moses lacks gets the English list of
    abbreviations, as it does in Moses.

    >>> tokenize(['Er sagte: "Ja."'], "de")
    ['Er sagte : &quot; Ja . &quot;']
    """
    return [_tokenize_line(line, language) for line in lines]


@functools.lru_cache(MAX_TOKENIZED_LINES)
def _tokenize_line(line: str, language: str) -> str:
    return " ".join(_moses_tokenizer(language).tokenize(line, escape=True))


@functools.cache
def _moses_tokenizer(language: str) -> Any:
    import sacremoses  # It takes as long to import as 1,000 lines take to score.

    return sacremoses.MosesTokenizer(lang=language)


def split_compounds(line: str) -> str:
    r"""Return a tokenized line with the hyphens inside words as separate tokens.

    Equals `perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g'` byte for byte. Matches do
    not overlap, so only the first of two hyphens around a single letter is split.
    Perl sees bytes, so both are split around a letter of two bytes (an umlaut).

    >>> split_compounds("ein Nord-Süd-Weg")
    'ein Nord ##AT##-##AT## Süd ##AT##-##AT## Weg'
    >>> split_compounds("a-b-c"), split_compounds("a-ü-c")
    ('a ##AT##-##AT## b-c', 'a ##AT##-##AT## ü ##AT##-##AT## c')
    """
    return COMPOUND.sub(rb"\1 ##AT##-##AT## \2", line.encode()).decode()


def lines_checksum(lines: Sequence[str]) -> str:
    r"""Return the first 16 hex digits that sha256sum gives for a file of these lines.

    >>> lines_checksum(["a", "b"])  # printf 'a\nb\n' | sha256sum
    '911169ddaaf146af'
    """
    text = "".join(f"{line}\n" for line in lines)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def format_scores(scores: Sequence[Score], references: Sequence[str]) -> str:
    """Return a line about the references, then one for each score.

    The last line has the intervals, in sacreBLEU's notation, if there are some.
    """
    checksum = lines_checksum(references)
    width = max(len(score.name) for score in scores)
    rows = [f"references: {len(references)} lines, sha256 {checksum}"]
    rows += [f"{s.name:<{width}}  {s.value:6.2f}  {s.signature}" for s in scores]
    intervals = [(s.name, s.interval) for s in scores if s.interval]
    if intervals:
        parts = (f"{n} {i.mean:.2f} ± {i.half_width:.2f}" for n, i in intervals)
        [(_, first), *_] = intervals
        rows.append(
            f"95% of {first.resamples:,} resamples (bootstrap, seed {first.seed}): "
            f"{', '.join(parts)}"
        )
    return "\n".join(rows)


def _check_line_counts(outputs: Sequence[str], references: Sequence[str]) -> None:
    counts = f"{len(outputs)} outputs and {len(references)} references"
    if len(outputs) != len(references):
        raise ValueError(f"every output needs one reference, got {counts}")
    if not references:
        raise ValueError(f"a score needs at least one line, got {counts}")
