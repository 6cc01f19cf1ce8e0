"""Check any input: a clear error, or exactly one line out for each line in.

`python -m tests.benchmarks.fuzz` and tests/programs/test_bad_input.py bring the input;
it goes through what decode, back_translate, evaluate, compare, prepare_data, the reader
of trees and the reader of configurations do with theirs. Whatever is raised must be one
of the errors that a program prints in one line, and must name the file or the key.
"""

import dataclasses
import json
import pathlib
import re
import shutil
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import ml_collections

from configs import own_text
from tests import bad_text, settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import config, parallel, parsing
from vaswani_jax.data import columns, linearization, mixture, prepared, treebank
from vaswani_jax.evaluation import bleu, comparison, metrics, significance
from vaswani_jax.inference import (
    back_translation,
    line_io,
    line_translator,
    minimum_bayes_risk,
    translator,
)
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.results import Hypothesis, Output
from vaswani_jax.pages import comparison_page
from vaswani_jax.text_checks import checks
from vaswani_jax.training import step

EXPECTED = (ValueError, OSError)
TEXT = [
    f"{split}_{side}" for split in ("train", "valid") for side in ("source", "target")
]


class Checks:
    """A directory, and a toy that has learned nothing and translates."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.settings = settings.small_settings(
            **{"search.max_extra_tokens": 2, "search.max_tokens": 6}
        )
        self.data = prepared.open_or_prepare(
            self.settings,
            directory / "toy",
            rebuild=False,
        )
        self.translator = line_translator.LineTranslator(
            self.settings, self.data.vocabulary
        )
        state = step.create_state(self.settings, vocab_size=self.data.vocabulary.size)
        self.params = parallel.replicate(state.params)
        checkpoint = Checkpoint(0, {"params": parallel.gather(state.params)}, {})
        self.model = translator.Translator(
            self.settings,
            self.data.vocabulary,
            members=[Member(self.settings.model, checkpoint)],
        )

    def decode(self, name: str, data: bytes) -> None:
        """Lines of a file, in blocks, to as many lines."""
        path = self._file(name, data)
        try:
            total = line_io.count_lines(str(path), flag="--input")
        except EXPECTED as error:
            bad_text.check_message(error, name)
            return
        translations = [
            line
            for block in line_io.read_blocks(str(path))
            for line in self.translator.translate(self.params, block)
        ]
        assert len(translations) == total, (data, translations)
        assert not any("\n" in line for line in translations)
        output = self.directory / "output"
        written = line_io.write_blocks(iter([translations]), str(output), total=None)
        assert written == total == output.read_bytes().count(b"\n")

    def back_translate(self, name: str, data: bytes, *, shard_lines: int) -> None:
        """Lines of a file, in shards, to as many pairs."""
        path = self._file(name, data)
        output = self.directory / "synthetic"
        shutil.rmtree(output, ignore_errors=True)
        try:
            result = back_translation.back_translate(
                self.model,
                path,
                output,
                method="noised_beam",
                shard_lines=shard_lines,
            )
        except EXPECTED as error:
            bad_text.check_message(error, name)
            return
        sources, targets = (
            list(columns.read(f"shard-*.{side}", output))
            for side in ("source", "target")
        )
        lines = columns.read(name, self.directory)
        assert targets == [line.lstrip("\ufeff").rstrip("\r") for line in lines]
        assert len(sources) == len(targets) == result.counts["lines"]

    def choose(
        self, texts: Sequence[str], *, utility: str, weights: Mapping[str, Any]
    ) -> None:
        """Candidates of a line, in any number, to the same in another order."""
        candidates = [
            Hypothesis(text, -float(rank), (), (Output((5,), (6, 2), -float(rank)),))
            for rank, text in enumerate(texts)
        ]
        settings = self.settings
        try:
            [ranked] = minimum_bayes_risk.rank_lines(
                ["x"],
                [candidates],
                utility=utility,
                data=settings.data,
                search=settings.search,
            )
            assert all(0 <= (each.rank_score or 0) <= 100.0001 for each in ranked)
            [reranked] = self.model.rerank(["x"], [candidates], **weights)
        except ValueError as error:
            assert re.match("utility must be|.* must be a number from", str(error))
            return
        for order in (ranked, reranked):
            assert sorted(each.score for each in order) == sorted(
                each.score for each in candidates
            )

    def evaluate(self, outputs: Sequence[str], references: Sequence[str]) -> None:
        """As many outputs as references to scores."""
        scores = bleu.score_outputs(
            list(outputs), list(references), data=self.settings.data
        )
        for score in scores:
            assert 0 <= score.value <= 100.0001, (score, outputs, references)

    def compare(
        self,
        source: Sequence[str],
        references: Sequence[str],
        systems: Sequence[Sequence[str]],
        *,
        text_form: str,
    ) -> None:
        """As many outputs of each system as references to a comparison."""
        data = dataclasses.replace(self.settings.data, text_form=text_form)
        counts = comparison.WordCounts({"a": 1}, "a line", str.split)
        text = comparison.Text("text", list(source), list(references), data, counts)
        available = metrics.find_metrics(references, data=data)
        compared = [
            comparison.System(f"system {number}", [list(outputs)], "")
            for number, outputs in enumerate(systems)
        ]
        with (
            mock.patch.dict(significance.DRAWS, dict.fromkeys(significance.DRAWS, 20)),
            mock.patch.object(metrics, "RESAMPLES", 20),
        ):
            names = list(comparison.METRICS) if len(available) == 4 else []
            result = comparison.compare(compared, text, metrics=names)
        for scores in result.scores:
            for difference in scores.differences:
                assert 0 < difference.p_value <= difference.corrected_p_value <= 1
                if systems[difference.first] == systems[difference.second]:
                    assert not difference.is_significant
        json.dumps(result.as_dict(), allow_nan=False)
        assert result.format() and comparison_page.render(result)

    def prepare(
        self,
        files: Mapping[str, tuple[str, bytes] | None],
        *,
        rules: Mapping[str, Any],
        noise: Mapping[str, float],
    ) -> None:
        """Files of text to token files.

        Args:
            files: For each setting the file's name and content; None: there is none.
            rules: Settings of cleaning.
            noise: Fields of a corpus; without any, the training text is no corpus.
        """
        names: dict[str, Any] = {}
        for key, file in files.items():
            name, data = file or ("missing", b"")
            if file:
                self._file(name, data)
            names[f"data.{key}"] = name
        train = [names["data.train_source"], names["data.train_target"]]
        sides = dict(zip(("source", "target"), train, strict=True))
        corpora = [{"name": "fuzz", **sides, **noise}] if noise else ""
        text_settings = settings.small_settings(
            **names,
            **rules,
            **{
                "data.source": "text",
                "data.text_directory": str(self.directory),
                "data.byte_fallback": True,
                "data.vocab_size": 270,
                "data.corpora": corpora,
            },
        )
        workdir = self.directory / "prepared"
        try:
            prepared_data = prepared.open_or_prepare(
                text_settings, workdir, rebuild=True
            )
        except EXPECTED as error:
            message = str(error)
            words = (*names.values(), "config.data", "split", "corpus 'fuzz'")
            assert any(word in message for word in words), message
            return
        counted = sum(prepared_data.counts["valid"].values())
        assert counted == len(prepared_data.text("valid")[0])
        counted = sum(prepared_data.counts["train"].values())
        left_out = sum(prepared_data.manifest.cleaning.values())
        num_read = sum(1 for _ in columns.read(train[0], self.directory))
        assert counted + left_out == num_read
        prepared.open_matching(text_settings, workdir, compare_text=True)

    def check(self, files: Mapping[str, tuple[str, bytes] | None]) -> None:
        """Files of text to a report, as text and as JSON, that counts their pairs.

        Args:
            files: As in `prepare`.
        """
        names: dict[str, Any] = {}
        for key, file in files.items():
            name, data = file or ("missing", b"")
            if file:
                self._file(name, data)
            names[f"data.{key}"] = name
        text_settings = settings.small_settings(
            **names,
            **{
                "data.source": "text",
                "data.text_directory": str(self.directory),
                "data.vocabulary": str(self.directory / "toy" / "vocabulary.model"),
            },
        )
        before = {path.name for path in self.directory.iterdir()}
        try:
            report = checks.check_data(text_settings, workdir=self.directory / "none")
        except EXPECTED as error:
            message = str(error)
            assert any(name in message for name in names.values()), message
            return
        assert {path.name for path in self.directory.iterdir()} == before
        assert report.describe().encode()
        record = json.loads(json.dumps(report.to_dict()))
        assert record["serious"] == report.is_serious
        for split in ("train", "valid"):
            lines = columns.read(names[f"data.{split}_source"], self.directory)
            assert record["texts"][split]["pairs"] == sum(1 for _ in lines)
        assert all(finding["remedies"] for finding in record["findings"])

    def trees(self, data: bytes) -> None:
        """A file of trees, or an error with its line."""
        path = self._file("trees", data)
        try:
            for tree in treebank.read(path):
                assert list(treebank.parse([str(tree)], name="tree")) == [tree]
                cleaned = treebank.clean(tree)
                if cleaned:
                    words = [leaf.word for leaf in cleaned.leaves()]
                    symbols = linearization.linearize(cleaned)
                    assert linearization.build_tree(symbols, words) == cleaned
        except ValueError as error:
            message = str(error)
            if message != f"{path} has no tree":
                assert re.match(f"{path}, line [0-9]+: .", message), error

    def configure(self, section: str, key: str, value: Any) -> None:
        """A value that a key should perhaps not have."""
        values = own_text.get_config().to_dict()
        values["data"]["source_locale"] = values["data"]["target_locale"] = "en"
        values[section][key] = value
        try:
            parsed = parsing.parse(ml_collections.ConfigDict(values))
        except ValueError as error:
            assert "config." in str(error), error
        else:
            assert isinstance(parsed, config.Config)

    def corpora(self, toml: bytes, stages: Any) -> None:
        """A file of corpora, and stages of them."""
        values = own_text.get_config().to_dict()
        values["data"]["source_locale"] = values["data"]["target_locale"] = "en"
        values["data"]["corpora"] = str(self._file("corpora.toml", toml))
        values["data"]["stages"] = stages
        try:
            data = parsing.parse(ml_collections.ConfigDict(values)).data
        except ValueError as error:
            assert str(error).startswith("config.data."), error
            return
        # What is recorded says the same.
        values["data"] |= {"corpora": data.corpora, "stages": data.stages}
        assert parsing.parse(ml_collections.ConfigDict(values)).data == data
        plan = mixture.plan(
            dataclasses.replace(data, epoch_pairs=10**9),
            {corpus.name: 9 for corpus in data.training_corpora},
        )
        assert plan
        assert all(sum(quotas.pairs) == 10**9 for quotas in plan.quotas)

    def _file(self, name: str, data: bytes) -> pathlib.Path:
        path = self.directory / name
        path.write_bytes(data)
        return path


def keys() -> list[tuple[str, str]]:
    """Section and name of every setting."""
    values = own_text.get_config().to_dict()
    return [
        (section, key)
        for section, inside in values.items()
        if isinstance(inside, dict)
        for key in inside
    ]
