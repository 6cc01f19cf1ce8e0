"""Check the texts of a configuration or of a run: `vaswani_jax.check_data`.

Each text is read once. Cheap checks look at every pair. The others look at blocks that
are spread over the text (`sample`), at all of it up to 200,000 pairs.
"""

import dataclasses
import functools
import itertools
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from vaswani_jax.core import config, data_config, languages, paths, types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.text_checks import (
    alignment,
    characters,
    cleaning_remedies,
    duplicates,
    lengths,
    locations,
    reading,
    segmentation,
    side_languages,
    sides,
)
from vaswani_jax.text_checks.duplicates import AcrossCorpora
from vaswani_jax.text_checks.findings import Finding, Severity
from vaswani_jax.text_checks.held_out import MAX_HELD_OUT, HeldOutSearch
from vaswani_jax.text_checks.reading import Text
from vaswani_jax.text_checks.report import DataReport
from vaswani_jax.text_checks.sample import (
    MAX_BLOCKS,
    Block,
    Pair,
    Sample,
    pairs_of,
    spread,
)

CHUNK = 10_000
Locales = tuple[str, str]
_RANKS = {Severity.SERIOUS: 0, Severity.MINOR: 1}


def check_data(
    settings: config.Config, *, workdir: str | os.PathLike[str] = ""
) -> DataReport:
    """Check the texts of a configuration or of a run, without writing anything.

    >>> settings = load_config("runs/demo")  # doctest: +SKIP
    >>> check_data(settings, workdir="runs/demo").is_serious  # doctest: +SKIP
    False

    Args:
        settings: What `load_config` returns.
        workdir: The directory of a run, whose prepared data and vocabulary are checked,
            too; "" for none.

    Returns:
        Measures of each text, findings, and notes.

    Raises:
        OSError: A text is missing or cannot be read.
        ImportError: A text needs a package that is not installed, and no data is
            prepared.
        ValueError: A text breaks a rule of its format, or prepared data is damaged. The
            message has the file and the rule, and the line if there is one. The same
            error is raised if the workdir is a URL.
    """
    name = paths.expand_home(os.fspath(workdir))
    if "://" in name:
        raise ValueError(
            f"workdir={name} must be a local directory: use `vaswani check` for a URL"
        )
    texts = reading.find(settings, pathlib.Path(name) if name else None)
    held_out = {
        text.split: [
            # Training text is read without the tags of corpora.
            (languages.remove_corpus_tags(source, settings.data), target)
            for source, target in itertools.islice(text.read(), MAX_HELD_OUT)
        ]
        for text in texts.all
        if text.split != "train"
    }
    overlap = HeldOutSearch(held_out)
    across = AcrossCorpora()
    num_training = sum(text.split == "train" for text in texts.all)
    text_checks = []
    for text in texts.all:
        text_check = _TextCheck(text, settings.data)
        is_training = text.split == "train"
        text_check.read(overlap if is_training else None, across, texts.vocabulary)
        # The corpora together leave as many blocks in memory as one text.
        text_check.keep_blocks(
            MAX_BLOCKS // num_training if is_training else MAX_BLOCKS
        )
        text_checks.append(text_check)
    profiles = _profiles(text_checks)
    shares = overlap.measures()
    is_file = settings.data.source == "text"
    result = overlap.find(is_file=is_file)
    result += _find_shared_held_out(held_out, is_file=is_file)
    if num_training > 1:
        result += across.find()
    measures = {}
    for text_check in text_checks:
        name = text_check.text.name
        measures[name] = text_check.measures | shares.get(name, {})
        result += text_check.find_all(profiles)
    result += _find_unlike_forms(text_checks)
    result, cleaning_notes = cleaning_remedies.add_cleaning_remedies(
        [*texts.findings, *result],
        settings.data,
        usual_ratio=max(
            check.usual_ratio for check in text_checks if check.text.split == "train"
        ),
    )
    result = locations.add_locations(result, texts.all)
    result.sort(key=lambda finding: _RANKS[finding.severity])
    notes = [*texts.notes, *cleaning_notes, *_notes(settings.data)]
    return DataReport(measures, result, notes)


class _TextCheck:
    """The checks of one text.

    Attributes:
        text: The text.
        blocks: Its sample.
        forms: Those of source and target, if they are in a language.
        usual_ratio: The largest `lengths.usual_ratio` of its target languages.
        measures: What was counted.
    """

    def __init__(self, text: Text, data: config.DataConfig) -> None:
        self.text, self._data = text, data
        self.blocks: list[Block] = []
        self.forms: list[characters.Forms] = []
        self.usual_ratio = 1.0
        self.measures: dict[str, Any] = {}
        self._findings: list[Finding] = []

    @property
    def is_language(self) -> bool:
        """True if both sides are in a language."""
        return self._data.source not in ("copy", "reverse", "treebank")

    def read(
        self,
        overlap: HeldOutSearch | None,
        across: AcrossCorpora,
        vocabulary: Vocabulary | None,
    ) -> None:
        """Look at all pairs, and judge all but what depends on other texts.

        Args:
            overlap: Looks for held-out pairs in training text; None for other text.
            across: Looks for pairs that several corpora have.
            vocabulary: The vocabulary of the run, if there is one.
        """
        pairs = self.text.read()
        sample = Sample(max_blocks=MAX_BLOCKS)
        counted_lengths = lengths.Lengths(
            has_trees=self._data.source == "treebank",
            is_empty_source=functools.partial(languages.is_empty, data=self._data),
        )
        counted_duplicates = duplicates.Duplicates(
            remove_tag=functools.partial(languages.remove_tag, data=self._data)
        )
        first_line = 1
        while chunk := list(itertools.islice(pairs, CHUNK)):
            counted_lengths.add(chunk, max_words=self._data.max_length - 1)
            counted_duplicates.add(chunk)
            if overlap:
                overlap.add(chunk, first_line=first_line, corpus=self.text.corpus)
            for pair in chunk:
                sample.add(pair)
            first_line += len(chunk)
        self.blocks = sample.blocks()
        if self.is_language:
            self.forms = characters.forms(self.blocks)
        if self.text.split == "train":
            across.add(counted_duplicates)
        self._judge(counted_lengths, counted_duplicates, vocabulary)

    def keep_blocks(self, size: int) -> None:
        """Keep some of the blocks for the checks that compare texts."""
        self.blocks = spread(self.blocks, max(1, size))

    def by_locales(self) -> dict[Locales, list[Block]]:
        """Return the blocks of each pair of languages, without tags and codes.

        Where lines have tags, lines without one are left out.
        """
        data = dataclasses.replace(self._data, target_locale=self.text.target_locale)
        has_tags = bool(languages.locales_by_tag(data))
        lines_of_all = (line for block in self.blocks for line in block.lines)
        if not has_tags and not any(
            languages.split_code(source)[0] for _, (source, _) in lines_of_all
        ):
            return {(self.text.source_locale, self.text.target_locale): self.blocks}
        groups: dict[Locales, list[Block]] = {}
        for block in self.blocks:
            lines: dict[Locales, list[tuple[int, Pair]]] = {}
            for number, (source, target) in block.lines:
                if has_tags and not languages.find_tag(source, data):
                    continue
                locale = languages.line_locale(source, data)
                source = languages.remove_tag(source, data).strip()
                line = number, (source, target)
                lines.setdefault((data.source_locale, locale), []).append(line)
            for locales, numbered_pairs in lines.items():
                part = Block(block.number, numbered_pairs)
                groups.setdefault(locales, []).append(part)
        return groups

    def find_all(self, profiles: Mapping[Locales, sides.Profile]) -> list[Finding]:
        """Return what is wrong with the text.

        Args:
            profiles: The words of both sides of the training text, by languages.
        """
        result = list(self._findings)
        if self.is_language:
            for locales, blocks in self.by_locales().items():
                if locales in profiles:
                    result += sides.find_swapped_lines(
                        blocks, profiles[locales], locales, split=self.text.split
                    )
        return [
            dataclasses.replace(
                finding,
                corpus=self.text.corpus,
                remedies=self._applicable_remedies(finding),
            )
            for finding in _without_repeated_swaps(result)
        ]

    def _applicable_remedies(self, finding: Finding) -> Sequence[str]:
        """Return a finding's remedies, without settings that this text does not read.

        Those of swapped sides begin with the settings that name files.
        """
        if finding.kind != "swapped":
            return finding.remedies
        if self.text.corpus:
            swap = (
                f"swap source and target of the corpus {self.text.corpus!r} in "
                "config.data.corpora"
            )
            return [swap, *finding.remedies[1:]]
        is_file = self._data.source == "text"
        return finding.remedies if is_file else finding.remedies[1:]

    def _judge(
        self,
        counted_lengths: lengths.Lengths,
        counted_duplicates: duplicates.Duplicates,
        vocabulary: Vocabulary | None,
    ) -> None:
        split = self.text.split
        measures: dict[str, Any] = {"origin": self.text.origin}
        measures |= counted_lengths.measures() | counted_duplicates.measures()
        result = counted_lengths.find_empty(split=split)
        may_copy = self._data.source in data_config.GENERATED
        result += counted_duplicates.find(
            split=split, may_copy=may_copy, may_repeat=self.text.may_repeat
        )
        if vocabulary:
            segmentations = segmentation.segment(pairs_of(self.blocks), vocabulary)
            measures["tokens"] = {
                name: side.measures()
                for name, side in zip(types.SIDES, segmentations, strict=True)
            }
            result += segmentation.find(segmentations, data=self._data, split=split)
        elif split == "train":
            result += counted_lengths.find_too_long(self._data)
        if self._data.source != "treebank":
            judgement = alignment.judge(self.blocks)
            measures["agreement"] = judgement.agreement
            result += alignment.find(judgement, self.blocks, split=split)
        if self.is_language:
            result += self._judge_languages(measures)
        self.measures, self._findings = measures, result

    def _judge_languages(self, measures: dict[str, Any]) -> list[Finding]:
        split = self.text.split
        character_measures = characters.measure(self.blocks)
        for key in ("scripts", "characters"):
            name = "different_characters" if key == "characters" else key
            measures[name] = {
                side: values[key] for side, values in character_measures.items()
            }
        result = characters.find_faults(self.blocks, data=self._data, split=split)
        if split == "train":
            result += characters.find_form(self.forms, data=self._data)
        seen_languages: list[side_languages.Languages | None] = [None, None]
        by_locales = self.by_locales()
        for locales, blocks in by_locales.items():
            self.usual_ratio = max(self.usual_ratio, lengths.usual_ratio(blocks))
            result += lengths.find_odd_ratios(
                blocks, split=split, locale=locales[1] if len(by_locales) > 1 else ""
            )
            in_scripts = sides.find_scripts(blocks, locales, split=split)
            result += in_scripts
            seen_languages = side_languages.languages(blocks, locales)
            if not any(f.severity is Severity.SERIOUS for f in in_scripts):
                result += side_languages.find_languages(
                    seen_languages, locales, split=split
                )
        if len(by_locales) == 1:
            measures["languages"] = {
                name: languages_of_side.shares if languages_of_side else {}
                for name, languages_of_side in zip(
                    types.SIDES, seen_languages, strict=True
                )
            }
        return result


def _find_shared_held_out(
    held_out: Mapping[str, Sequence[Pair]], *, is_file: bool
) -> list[Finding]:
    """Return a finding if the test text has many validation pairs."""
    if not ("valid" in held_out and "test" in held_out):
        return []
    overlap = HeldOutSearch({"test": held_out["test"]}, other_split="valid")
    overlap.add(held_out["valid"], first_line=1)
    return overlap.find(is_file=is_file)


def _find_unlike_forms(text_checks: Sequence[_TextCheck]) -> list[Finding]:
    """Return findings of held-out text in another form than all training text."""
    training = [
        text_check
        for text_check in text_checks
        if text_check.text.split == "train" and text_check.forms
    ]
    if not training:
        return []
    trained_forms = characters.mix_forms(
        [text_check.forms for text_check in training],
        [text_check.measures["pairs"] for text_check in training],
    )
    return [
        finding
        for text_check in text_checks
        if text_check.text.split != "train" and text_check.forms
        for finding in characters.find_unlike_forms(
            trained_forms, text_check.forms, split=text_check.text.split
        )
    ]


def _without_repeated_swaps(all_findings: Sequence[Finding]) -> list[Finding]:
    """Return findings of which one at most says that the sides are swapped."""
    result: list[Finding] = []
    for finding in all_findings:
        if finding.kind == "swapped" and any(f.kind == "swapped" for f in result):
            continue
        result.append(finding)
    return result


def _profiles(text_checks: Sequence[_TextCheck]) -> dict[Locales, sides.Profile]:
    """Return the words of both sides of the training text, by languages."""
    pairs: dict[Locales, list[Pair]] = {}
    for text_check in text_checks:
        if text_check.text.split == "train" and text_check.is_language:
            for locales, blocks in text_check.by_locales().items():
                pairs.setdefault(locales, []).extend(pairs_of(blocks))
    return {
        locales: sides.Profile.learn(training_pairs)
        for locales, training_pairs in pairs.items()
    }


def _notes(data: config.DataConfig) -> list[str]:
    if data.source == "treebank":
        return [
            "trees: scripts, languages, swapped sides, alignment and forms do not apply"
        ]
    if data.source in ("copy", "reverse"):
        return [
            f"data.source={data.source} is no language: scripts, languages, swapped "
            "sides and forms do not apply"
        ]
    locales = (data.source_locale, *languages.target_locales(data))
    unknown = [locale for locale in locales if not side_languages.can_identify(locale)]
    if not unknown:
        return []
    return [
        f"languages that are not identified: {', '.join(unknown)} (only their scripts "
        f"are){side_languages.how_to_identify()}"
    ]
