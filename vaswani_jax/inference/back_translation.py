"""Make synthetic sentence pairs from text in one language (Sennrich et al., 2016).

A model from German to English turns German text into English sources, from which a
model from English to German learns: "Improving Neural Machine Translation Models with
Monolingual Data". With the translations as targets it is sequence-level distillation
(Kim and Rush, 2016).
"""

import collections
import contextlib
import dataclasses
import hashlib
import itertools
import logging
import os
import pathlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tqdm

from vaswani_jax.core import config, languages, parsing, plurals, processes
from vaswani_jax.data import columns, synthetic_corpus
from vaswani_jax.data.synthetic_corpus import SyntheticCorpus
from vaswani_jax.data.word_noise import WordNoise
from vaswani_jax.inference import ensemble, line_warnings
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.inference.results import Hypothesis
from vaswani_jax.inference.translator import Translator

METHODS = ("beam", "sampling", "noised_beam")
INPUT_SIDES = ("target", "source")
# Caswell et al., 2019, "Tagged Back-Translation".
TAG = "<BT>"

# The names of `BackTranslation.counts`.
COUNTS = (
    "lines",
    "empty",
    "untranslated",
    "data.max_length",
    "search.max_source_tokens",
)

logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BackTranslationOptions:
    """Options of `back_translate`, which its flags have, too.

    Attributes:
        method: "beam" writes the best translation that the search finds, "noised_beam"
            adds noise to it, "sampling" draws one.
        input_side: The side of the new pairs that the input becomes: "target" for
            back-translation, "source" for distillation.
        tag: The first word of the new pairs' source lines in training, by which the
            model knows them; "" for none, None for "<BT>" if the sources are synthetic.
        noise: The noise of "noised_beam".
        shard_lines: Lines of a shard. A kill loses the unfinished shard.
    """

    method: str = "beam"
    input_side: str = "target"
    tag: str | None = None
    noise: WordNoise = dataclasses.field(default_factory=WordNoise)
    shard_lines: int = 10_000

    def check(self) -> None:
        """Refuse options out of range.

        Raises:
            ValueError: Has the option, its value and the rule.
        """
        for name, choices in (("method", METHODS), ("input_side", INPUT_SIDES)):
            if (value := getattr(self, name)) not in choices:
                raise ValueError(
                    f"{name} must be one of {', '.join(choices)}, got {value!r}"
                )
        if self.shard_lines < 1:
            raise ValueError(f"shard_lines must be at least 1, got {self.shard_lines}")
        if self.tag and len(self.tag.split()) != 1:
            raise ValueError(f"tag must be a word without spaces, got {self.tag!r}")
        self.noise.check()
        if self.method != "noised_beam" and self.noise != WordNoise():
            raise ValueError(f"noise needs method=noised_beam, got {self.method!r}")
        if self.method == "noised_beam" and self.input_side == "source":
            raise ValueError(
                "method=noised_beam needs input_side=target: noise is for sources"
            )

    @property
    def source_tag(self) -> str:
        """The tag of the new pairs' source lines, or ""."""
        if self.tag is None:
            return TAG if self.input_side == "target" else ""
        return self.tag


@dataclasses.dataclass(frozen=True)
class BackTranslation:
    """The result of `back_translate`.

    Attributes:
        directory: Where the pairs lie.
        corpora: The file that config.data.corpora takes.
        counts: Numbers of lines: all ("lines"), those with an empty output ("empty"),
            and those of them that have text ("untranslated"). Also lines over
            "data.max_length" or "search.max_source_tokens".
    """

    directory: pathlib.Path
    corpora: pathlib.Path
    counts: Mapping[str, int]


def back_translate(
    translator: Translator,
    input: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    search: Mapping[str, Any] | None = None,
    **options: Any,
) -> BackTranslation:
    """Translate a text, and write it and its translations as a corpus for training.

    After a kill, the same call continues with the first unfinished shard. The output
    depends neither on interruptions nor on the number of devices and processes. It may
    resume with another `search.source_tokens_per_batch`. Scores may then differ in
    their last digits, and so, rarely, a translation.

    >>> reverse = vaswani_jax.load("runs/de_en")  # doctest: +SKIP
    >>> vaswani_jax.back_translate(  # doctest: +SKIP
    ...     reverse, "mono.de", "out", method="sampling", search={"top_k": 10}
    ... )

    Args:
        translator: A model that translates from the language of the input.
        input: Text with a sentence a line, named FILES[#COLUMN] as training text is: a
            file, a glob of shards, a column of TSV, JSON lines or Parquet.
        output: The directory to write: a new one, or one that the same call began.
        search: Settings of `config.search` to change, except for sampling, which the
            method decides.
        **options: The fields of `BackTranslationOptions`: method, input_side, tag,
            noise, shard_lines.

    Returns:
        Where the pairs lie, and how many lines were translated.

    Raises:
        ValueError: An option or a setting is out of range; the input is empty, not
            UTF-8, changes during the run, or has a line without its tag; the output has
            other settings; processes have different models, settings or input; or the
            model parses.
        OSError: A file cannot be read or written.
    """
    settings = BackTranslationOptions(**options)
    return run(translator, input, output, options=settings, search=search)


def run(
    translator: Translator,
    input: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    options: BackTranslationOptions,
    search: Mapping[str, Any] | None = None,
) -> BackTranslation:
    """Do the work of `back_translate`, with the options as a dataclass."""
    options.check()
    if translator.vocabulary.is_trees:
        raise ValueError(
            "back-translation needs a run that translates, this one parses"
        )
    settings = _settings(translator.config, options, search=search or {})
    ensemble.check_positions(settings, translator.members)
    text = _Text.read(os.fspath(input), settings.data, shard_lines=options.shard_lines)
    record = _record(translator, settings, options, text=text)
    _check_processes_agree(record, settings)
    directory = pathlib.Path(output)
    with contextlib.ExitStack() as stack:
        corpus = processes.run_on_main(
            lambda: stack.enter_context(
                synthetic_corpus.open_corpus(directory, record)
            ),
            ValueError,
            OSError,
        )
        _translate(translator, settings, options, text=text, corpus=corpus)
        totals: collections.Counter[str] = collections.Counter()

        def finish() -> None:
            if corpus is not None:
                totals.update(corpus.total)
                corpora = corpus.finish(tag=options.source_tag)
                _report(totals, settings, corpora=corpora)

        processes.run_on_main(finish, OSError)
        numbers = processes.broadcast_numbers_from_main([totals[n] for n in COUNTS])
        counts = dict(zip(COUNTS, numbers, strict=True))
        return BackTranslation(directory, directory / synthetic_corpus.CORPORA, counts)


def _settings(
    settings: config.Config,
    options: BackTranslationOptions,
    *,
    search: Mapping[str, Any],
) -> config.Config:
    if "sampling" in search:
        raise ValueError(
            f"search must have no sampling, got {search['sampling']!r}: "
            f"method={options.method} decides it"
        )
    overrides = {f"search.{key}": value for key, value in search.items()}
    is_sampling = options.method == "sampling"
    return parsing.override(settings, {"search.sampling": is_sampling, **overrides})


@dataclasses.dataclass(frozen=True)
class _Text:
    """The input.

    Attributes:
        side: Its files.
        num_lines: Its lines.
        sha256: The digest of its lines, each with a line feed.
        shard_digests: The digest of each shard's lines.
    """

    side: columns.Side
    num_lines: int
    sha256: str
    shard_digests: tuple[str, ...]

    @classmethod
    def read(cls, name: str, data: config.DataConfig, *, shard_lines: int) -> "_Text":
        """Check and hash all lines, before any is translated."""
        if columns.split_name(name)[0] == "-":
            raise ValueError(
                f"--input={name}: back-translation reads its input twice, standard "
                "input only once; write it to a file"
            )
        side = columns.find(name, pathlib.Path())
        digest, num_lines = hashlib.sha256(), 0
        shard_digests = []
        lines = _checked_lines(side, data)
        while block := list(itertools.islice(lines, shard_lines)):
            digest.update(_encode(block))
            shard_digests.append(_digest(block))
            num_lines += len(block)
        if not num_lines:
            raise ValueError(f"--input={name} has no line")
        return cls(side, num_lines, digest.hexdigest(), tuple(shard_digests))


def _encode(lines: Sequence[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256(_encode(lines)).hexdigest()


def _checked_lines(side: columns.Side, data: config.DataConfig) -> Iterator[str]:
    """Yield all lines, of which each has its tag if there are several languages.

    Raises:
        ValueError: The message has the file of the line, its number there, and the
            rule.
    """
    for shard in side.shards:
        lines = columns.read_shard(shard, side.column)
        for number, line in enumerate(lines, start=1):
            try:
                languages.check_tags([line], data, first_line=number)
            except ValueError as error:
                raise ValueError(f"{shard}, {error}") from None
            yield line


def _record(
    translator: Translator,
    settings: config.Config,
    options: BackTranslationOptions,
    *,
    text: _Text,
) -> dict[str, Any]:
    """Return the settings, models and input by which the output is computed."""
    record = {
        "input.lines": text.num_lines,
        "input.sha256": text.sha256,
        "source_locale": settings.data.source_locale,
        "target_locale": settings.data.target_locale,
        "text_form": settings.data.text_form,
        "vocabulary": translator.vocabulary.fingerprint,
        "models": [member.describe() for member in translator.members],
        "seed": settings.seed,
        "method": options.method,
        "input_side": options.input_side,
        "tag": options.source_tag,
        "shard_lines": options.shard_lines,
    }
    search = dataclasses.asdict(settings.search)
    record |= {f"search.{key}": value for key, value in search.items()}
    if options.method == "noised_beam":
        noise = dataclasses.asdict(options.noise)
        record |= {f"noise.{key}": value for key, value in noise.items()}
    return record


def _check_processes_agree(record: Mapping[str, Any], settings: config.Config) -> None:
    """Refuse processes whose pairs would differ from those of process 0.

    Raises:
        ValueError: Names what differs; raised in every process.
    """
    names = {"input.sha256": "input", "vocabulary": "vocabulary", "models": "models"}
    other_values = [
        (key, value)
        for key, value in record.items()
        if key not in {"input.lines", *names}
    ]
    processes.refuse_differences(
        {
            **{name: repr(record[key]) for key, name in names.items()},
            "settings": repr((other_values, config.shared_values(settings))),
        }
    )


def _translate(
    translator: Translator,
    settings: config.Config,
    options: BackTranslationOptions,
    *,
    text: _Text,
    corpus: SyntheticCorpus | None,
) -> None:
    """Write all shards that are not written; only the main process has a corpus."""
    line_translator = LineTranslator(
        settings,
        translator.vocabulary,
        models=[member.model for member in translator.members],
        batch_for_each_device=True,
    )
    warnings = line_warnings.LineWarnings(translator.vocabulary, settings)
    lines = text.side.read()
    num_shards = -(-text.num_lines // options.shard_lines)
    bar = tqdm.tqdm(total=text.num_lines, unit=" lines", disable=None)
    for shard in range(num_shards):
        start_time = time.monotonic()
        start = shard * options.shard_lines
        num_lines = min(options.shard_lines, text.num_lines - start)
        block = list(itertools.islice(lines, num_lines))
        if len(block) < num_lines:
            raise _length_error(text, num_lines=start + len(block))
        if _digest(block) != text.shard_digests[shard]:
            raise _change_error(
                f"one of its lines {start + 1:,} to {start + num_lines:,} differs"
            )
        warnings.count(block)
        is_written = corpus is not None and corpus.is_written(shard)
        if processes.broadcast_from_main(is_written):
            bar.update(len(block))
            continue
        first_line = shard * options.shard_lines + 1
        hypotheses = line_translator.hypotheses(
            translator.replicated_params, block, first_line=first_line
        )
        if corpus is not None:
            outputs = [n_best[0].text for n_best in hypotheses]
            if options.method == "noised_beam":
                outputs = _add_noise(
                    block, outputs, settings, noise=options.noise, first_line=first_line
                )
            counts = _count(block, hypotheses, settings)
            sides = _sides(block, outputs, settings.data, side=options.input_side)
            corpus.write(shard, sides, counts=counts)
            rate = len(block) / max(1e-9, time.monotonic() - start_time)
            logger.info(
                f"shard {shard + 1:,} of {num_shards:,}: {len(block):,} lines, "
                f"{rate:,.0f} lines/s"
            )
        bar.update(len(block))
    if num_more := sum(1 for _ in lines):
        raise _length_error(text, num_lines=text.num_lines + num_more)
    bar.close()
    warnings.log()


def _length_error(text: _Text, *, num_lines: int) -> ValueError:
    return _change_error(f"it had {text.num_lines:,} lines, and has {num_lines:,}")


def _change_error(change: str) -> ValueError:
    """Return the error of an input that is not what `_Text.read` has hashed."""
    return ValueError(
        f"the input changed during the run: {change}; restore it, and run the same "
        "command again"
    )


def _add_noise(
    lines: Sequence[str],
    outputs: Sequence[str],
    settings: config.Config,
    *,
    noise: WordNoise,
    first_line: int,
) -> list[str]:
    """Return outputs with noise that depends on the seed and a line's number."""
    noised = []
    pairs = zip(lines, outputs, strict=True)
    for number, (line, output) in enumerate(pairs, start=first_line):
        locale = languages.line_locale(line, settings.data)
        noised.append(
            noise.apply(
                output,
                np.random.default_rng((settings.seed, number)),
                has_spaces=languages.has_spaces(locale, settings.data),
            )
        )
    return noised


def _sides(
    lines: Sequence[str],
    outputs: Sequence[str],
    data: config.DataConfig,
    *,
    side: str,
) -> dict[str, Sequence[str]]:
    """Return the new pairs' sides, of which the input is one."""
    if side == "source":
        return {"source": lines, "target": outputs}
    # A tag of the reverse model is no part of the text.
    targets = [languages.remove_tag(line, data) for line in lines]
    return {"source": outputs, "target": targets}


def _count(
    lines: Sequence[str],
    hypotheses: Sequence[Sequence[Hypothesis]],
    settings: config.Config,
) -> collections.Counter[str]:
    is_empty = [not n_best[0].text for n_best in hypotheses]
    has_text = [bool(n_best[0].outputs) for n_best in hypotheses]
    counts = line_warnings.count_unusual_lines(hypotheses, settings)
    counts["lines"] = len(lines)
    counts["empty"] = sum(is_empty)
    counts["untranslated"] = sum(map(min, is_empty, has_text))
    return counts


def _report(
    counts: collections.Counter[str],
    settings: config.Config,
    *,
    corpora: pathlib.Path,
) -> None:
    line_warnings.warn_of_unusual_lines(counts, settings)
    if count := counts["empty"]:
        subject = plurals.format_count(
            count, "translation is", plural="translations are"
        )
        logger.warning(
            f"{subject} empty (sources with text: {counts['untranslated']:,}); "
            "training leaves such pairs out"
        )
    lines, pairs = (plurals.format_count(counts["lines"], n) for n in ("line", "pair"))
    logger.info(f"{lines} in, {pairs} out")
    logger.info(f"train on them with others: config.data.corpora={corpora}")
