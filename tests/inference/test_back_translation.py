"""Synthetic pairs of a model that repeats its source: what is tested is the rest."""

import json
import pathlib
from typing import Any

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from tests import settings
from tests.inference import echo
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import processes, types
from vaswani_jax.data import columns
from vaswani_jax.data.word_noise import WordNoise
from vaswani_jax.inference import back_translation, generate
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.line_translator import LineTranslator
from vaswani_jax.inference.translator import Translator

LINES = ["a b c", "", "hello world", "   ", "d e f g h a b c d e f g h a b c d", "a"]


def make_translator(**overrides: Any) -> Translator:
    small = settings.small_settings(**overrides)
    params = {"weight": np.float32([overrides.get("seed", 0)])}
    member = Member(small.model, Checkpoint(3, {"params": params}, {}))
    return Translator(small, settings.letters_vocabulary(), members=[member])


class Echo:
    """Stands in for the search; counts the calls, and fails at one of them."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.num_calls, self.fails_at = 0, fails_at
        self.numbers: set[tuple[int, ...]] = set()

    def __call__(self, params: object, rows: generate.Rows) -> types.Hypotheses:
        self.num_calls += 1
        if self.num_calls == self.fails_at:
            raise KeyboardInterrupt
        for number in rows.numbers.reshape(-1, 2):
            self.numbers.add(tuple(int(part) for part in number))
        scores = np.zeros((*rows.source.shape[:2], 1), np.float32)
        return types.Hypotheses(rows.source[:, :, None], scores)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Echo:
    model = Echo()
    monkeypatch.setattr(LineTranslator, "search", model)
    return model


def write_input(directory: pathlib.Path, lines: list[str] = LINES) -> pathlib.Path:
    path = directory / "mono.de"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def sides(directory: pathlib.Path) -> list[list[str]]:
    """The lines of both sides, as training reads them."""
    return [
        list(columns.read(f"shard-*.{side}", directory))
        for side in ("source", "target")
    ]


def contents(directory: pathlib.Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("shard-*")}


def test_input_becomes_the_target_and_its_translation_the_source(
    tmp_path: pathlib.Path, model: Echo
) -> None:
    result = back_translation.back_translate(
        make_translator(), write_input(tmp_path), tmp_path / "out", shard_lines=4
    )
    assert sides(tmp_path / "out") == [
        ["a b c", "", "hello world", "", LINES[4], "a"],
        LINES,
    ]
    assert set(result.counts) == set(back_translation.COUNTS)
    assert dict(result.counts) == {
        "lines": 6,
        "empty": 2,
        "untranslated": 0,
        "data.max_length": 0,
        "search.max_source_tokens": 1,
    }
    assert 'tag = "<BT>"' in result.corpora.read_text()


def test_distillation_keeps_the_input_as_the_source(
    tmp_path: pathlib.Path, model: Echo
) -> None:
    result = back_translation.back_translate(
        make_translator(),
        write_input(tmp_path),
        tmp_path / "out",
        input_side="source",
    )
    assert sides(tmp_path / "out")[0] == LINES
    assert sides(tmp_path / "out")[1][2] == "hello world"
    assert "tag" not in result.corpora.read_text()


@hypothesis.settings(
    max_examples=10,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(
    lines=st.lists(
        st.text(st.sampled_from("ab \r\ufeff\u2028\0漢"), max_size=12),
        min_size=1,
        max_size=9,
    ),
    shard_lines=st.integers(1, 4),
    method=st.sampled_from(back_translation.METHODS),
)
def test_any_line_has_its_line_on_both_sides(
    tmp_path_factory: pytest.TempPathFactory,
    model: Echo,
    lines: list[str],
    shard_lines: int,
    method: str,
) -> None:
    directory = tmp_path_factory.mktemp("lines")
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    (directory / "mono").write_bytes(text)
    back_translation.back_translate(
        make_translator(),
        directory / "mono",
        directory / "out",
        shard_lines=shard_lines,
        method=method,
    )
    sources, targets = sides(directory / "out")
    lines_read = columns.read("mono", directory)
    assert targets == [line.lstrip("\ufeff").rstrip("\r") for line in lines_read]
    assert len(sources) == len(targets)


@pytest.mark.parametrize("method", back_translation.METHODS)
def test_a_killed_corpus_is_finished_as_if_it_was_not(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    lines = [f"{'abcdefgh'[n % 8]} b {'c ' * (n % 7)}" for n in range(12)]
    path = write_input(tmp_path, lines)
    num_calls: list[int] = []

    def run(name: str, fails_at: int | None = None) -> None:
        model = Echo(fails_at)
        monkeypatch.setattr(LineTranslator, "search", model)
        try:
            back_translation.back_translate(
                make_translator(), path, tmp_path / name, shard_lines=3, method=method
            )
        finally:
            num_calls.append(model.num_calls)

    run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("killed", fails_at=3)
    assert not (tmp_path / "killed/corpora.toml").exists()
    assert len(contents(tmp_path / "killed")) == 4
    unfinished = tmp_path / "killed/shard-00002.source.unfinished"
    unfinished.write_text("half of a li")
    run("killed")
    assert num_calls == [4, 3, 2]
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    # Once more: nothing is left to do.
    run("killed")
    assert num_calls[-1] == 0


def test_a_corpus_goes_on_in_smaller_batches(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They, and settings of training, decide no translation."""
    path, manifest = write_input(tmp_path), tmp_path / "out/manifest.json"

    def run(model: Echo, tokens: int, **overrides: Any) -> None:
        monkeypatch.setattr(LineTranslator, "search", model)
        back_translation.back_translate(
            make_translator(**overrides),
            path,
            tmp_path / "out",
            shard_lines=2,
            search={"source_tokens_per_batch": tokens},
        )

    with pytest.raises(KeyboardInterrupt):
        run(Echo(fails_at=2), 128)
    record = json.loads(manifest.read_text())
    assert sorted(record["shards"]) == ["0"]
    # Older manifests have what decides no translation.
    record["settings"]["search.source_tokens_per_batch"] = 128
    record["settings"]["models"][0]["settings"]["rematerialize"] = False
    manifest.write_text(json.dumps(record))
    run(Echo(), 64, **{"model.rematerialize": True, "model.dropout_rate": 0.3})
    assert sides(tmp_path / "out")[1] == LINES
    with pytest.raises(ValueError, match=r"models=.*'d_ff': 10"):
        run(Echo(), 64, **{"model.d_ff": 12})


def test_after_a_kill_warnings_cover_finished_shards(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = write_input(tmp_path, ["a 漢", "b", "c 漢", "d"])
    for fails_at in (2, None):
        monkeypatch.setattr(LineTranslator, "search", Echo(fails_at))
        caplog.clear()
        try:
            back_translation.back_translate(
                make_translator(), path, tmp_path / "out", shard_lines=2
            )
        except KeyboardInterrupt:
            assert fails_at
    assert "2 lines have characters that the vocabulary lacks" in caplog.text


def test_processes_that_write_nothing_return_the_counts_of_the_main_one(
    tmp_path: pathlib.Path, model: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = list(range(10, 10 + len(back_translation.COUNTS)))
    monkeypatch.setattr(processes, "is_main_process", lambda: False)
    monkeypatch.setattr(processes, "broadcast_numbers_from_main", lambda _: numbers)
    result = back_translation.back_translate(
        make_translator(), write_input(tmp_path), tmp_path / "out"
    )
    assert dict(result.counts) == dict(
        zip(back_translation.COUNTS, numbers, strict=True)
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"lines": ["c b a", *LINES[1:]]}, "input"),
        ({"seed": 2}, "models, settings"),
        ({"method": "noised_beam"}, "settings"),
    ],
)
def test_processes_that_differ_are_refused_before_they_write(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    names: str,
) -> None:
    digests: list[np.ndarray] = []

    def gathered(local: np.ndarray) -> np.ndarray:
        digests.append(local)
        if len(digests) == 1:  # Process 0 has sent its own, and waits for the other.
            raise KeyboardInterrupt
        return np.stack(digests)

    monkeypatch.setattr(processes, "num_processes", lambda: 2)
    monkeypatch.setattr(processes, "gather_from_all", gathered)
    path = write_input(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        back_translation.back_translate(make_translator(), path, tmp_path / "out")
    overrides = {"seed": options.pop("seed")} if "seed" in options else {}
    write_input(tmp_path, options.pop("lines", LINES))
    message = rf"^processes \[1\] differ from process 0 in {names}: "
    with pytest.raises(ValueError, match=message):
        back_translation.back_translate(
            make_translator(**overrides), path, tmp_path / "out", **options
        )
    assert not (tmp_path / "out").exists()


def test_samples_and_noise_depend_on_the_line_of_the_whole_text(
    tmp_path: pathlib.Path, model: Echo
) -> None:
    lines = ["a b c d e f g h"] * 6
    path = write_input(tmp_path, lines)
    noised = []
    for shard_lines in (2, 6):
        back_translation.back_translate(
            make_translator(),
            path,
            tmp_path / str(shard_lines),
            shard_lines=shard_lines,
            method="noised_beam",
        )
        noised.append(sides(tmp_path / str(shard_lines))[0])
        assert model.numbers - {(0, 0)} == {(line, 0) for line in range(1, 7)}
        model.numbers.clear()
    assert noised[0] == noised[1]
    assert len(set(noised[0])) > 3


def test_sampling_draws_and_beam_search_does_not(tmp_path: pathlib.Path) -> None:
    """With a real model: the stand-in repeats its source by every method."""
    small, vocabulary = settings.small_settings(), settings.letters_vocabulary()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=1)
    member = Member(small.model, Checkpoint(1, {"params": params}, {}))
    translator = Translator(small, vocabulary, members=[member])
    path = write_input(tmp_path, ["a b c", "c b a"])

    def sources_of(name: str, **options: Any) -> list[str]:
        back_translation.back_translate(translator, path, tmp_path / name, **options)
        return sides(tmp_path / name)[0]

    best = sources_of("best", search={"beam_size": 1})
    drawn = sources_of("drawn", method="sampling")
    assert any(best) and drawn != best


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"method": "sampling"}, "method="),
        ({"search": {"beam_size": 2}}, "search.beam_size=3, not 2"),
        ({"tag": ""}, "tag='<BT>', not ''"),
        ({"shard_lines": 2}, "shard_lines="),
        ({"seed": 1}, "models="),
        ({"lines": ["other"]}, "input.lines=6, not 1"),
        ({"input_side": "source"}, "input_side="),
    ],
)
def test_other_settings_do_not_go_on(
    tmp_path: pathlib.Path, model: Echo, options: dict[str, Any], key: str
) -> None:
    path = write_input(tmp_path)
    back_translation.back_translate(make_translator(), path, tmp_path / "out")
    before = contents(tmp_path / "out")
    overrides = {"seed": options.pop("seed")} if "seed" in options else {}
    write_input(tmp_path, options.pop("lines", LINES))
    with pytest.raises(ValueError, match="was begun with") as error:
        back_translation.back_translate(
            make_translator(**overrides), path, tmp_path / "out", **options
        )
    assert key in str(error.value)
    assert contents(tmp_path / "out") == before


def test_manifest_names_what_made_the_text(tmp_path: pathlib.Path, model: Echo) -> None:
    noise = WordNoise(word_dropout=0.25)
    back_translation.back_translate(
        make_translator(),
        write_input(tmp_path),
        tmp_path / "out",
        method="noised_beam",
        noise=noise,
    )
    manifest = json.loads((tmp_path / "out/manifest.json").read_text())
    recorded = manifest["settings"]
    assert recorded["noise.word_dropout"] == 0.25
    assert recorded["vocabulary"] == settings.letters_vocabulary().fingerprint
    assert recorded["models"][0]["step"] == 3
    assert len(recorded["models"][0]["parameters"]) == 64
    files = manifest["shards"]["0"]["files"]
    assert sorted(files) == ["shard-00000.source", "shard-00000.target"]


def test_a_tag_of_the_model_is_no_part_of_the_text(
    tmp_path: pathlib.Path, model: Echo
) -> None:
    translator = make_translator(**settings.TWO_TARGETS)
    path = write_input(tmp_path, ["<2de> a b", "", "<2fr> a"])
    back_translation.back_translate(translator, path, tmp_path / "out")
    assert sides(tmp_path / "out")[1] == ["a b", "", "a"]
    path = write_input(tmp_path, ["<x> a b", "a"])
    tagged = make_translator(**settings.TAGGED)
    back_translation.back_translate(tagged, path, tmp_path / "tagged")
    assert sides(tmp_path / "tagged")[1] == ["a b", "a"]
    write_input(tmp_path, ["<2de> a b", "a"])
    with pytest.raises(ValueError, match=r"mono\.de, line 2 must begin with a tag"):
        back_translation.back_translate(translator, path, tmp_path / "other")
    # Of several shards, the one with the line is named, and its line there.
    for name, lines in (("s1.de", ["<2de> a", ""]), ("s2.de", ["<2fr> b", "c"])):
        write_input(tmp_path, lines).rename(tmp_path / name)
    with pytest.raises(ValueError) as error:
        back_translation.back_translate(
            translator, tmp_path / "s*.de", tmp_path / "other"
        )
    assert str(error.value).startswith(f"{tmp_path / 's2.de'}, line 2 must begin with")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "greedy"}, "method must be one of beam, sampling, noised_beam"),
        ({"input_side": "both"}, "input_side must be one of target, source"),
        ({"shard_lines": 0}, "shard_lines must be at least 1, got 0"),
        ({"tag": "a b"}, "tag must be a word without spaces, got 'a b'"),
        (
            {"method": "noised_beam", "input_side": "source"},
            "noised_beam needs input_side=target",
        ),
        ({"noise": WordNoise(word_shuffle=-1)}, "word_shuffle must be at least 0"),
        ({"noise": WordNoise(word_blank=0.2)}, "noise needs method=noised_beam, got"),
        ({"search": {"top_k": 3}}, "config.search.top_k=3 needs config.search.samp"),
        (
            {"search": {"sampling": True}},
            "search must have no sampling, got True: method=beam decides it",
        ),
    ],
)
def test_options_out_of_range_are_refused(
    tmp_path: pathlib.Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        back_translation.back_translate(
            make_translator(), write_input(tmp_path), tmp_path / "out", **options
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("missing", None, "no file missing"),
        ("-", None, "--input=-: back-translation reads its input twice"),
        ("empty", b"", "empty has no line"),
        ("bytes", b"a\n\xff\n", "bytes, line 2: not UTF-8"),
        ("a.gz", b"a\n", "a.gz: not a complete gzip file"),
    ],
)
def test_input_that_cannot_be_read_is_refused(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    text: bytes | None,
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        pathlib.Path(name).write_bytes(text)
    with pytest.raises((ValueError, OSError), match=message):
        back_translation.back_translate(make_translator(), name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("lines", "change", "num_shards"),
    [
        (LINES[:3], "it had 6 lines, and has 3", 1),
        ([*LINES, "b"], "it had 6 lines, and has 7", 3),
        ([*LINES[:3], "b", *LINES[4:]], "one of its lines 3 to 4 differs", 1),
    ],
)
def test_an_input_that_changes_is_refused_until_it_is_restored(
    tmp_path: pathlib.Path,
    model: Echo,
    monkeypatch: pytest.MonkeyPatch,
    lines: list[str],
    change: str,
    num_shards: int,
) -> None:
    path, corpora = write_input(tmp_path), tmp_path / "out/corpora.toml"
    read = columns.Side.read

    def change_and_read(side: columns.Side) -> Any:
        write_input(tmp_path, lines)
        return read(side)

    def run() -> None:
        back_translation.back_translate(
            make_translator(), path, tmp_path / "out", shard_lines=2
        )

    with monkeypatch.context() as patch:
        patch.setattr(columns.Side, "read", change_and_read)
        message = f"^the input changed during the run: {change}; restore it, and run "
        with pytest.raises(ValueError, match=message):
            run()
    assert sorted(contents(tmp_path / "out")) == [
        f"shard-{number:05}.{side}"
        for number in range(num_shards)
        for side in ("source", "target")
    ]
    assert not corpora.exists()
    write_input(tmp_path)
    run()
    assert corpora.exists()
    assert sides(tmp_path / "out")[1] == LINES


def test_each_device_searches_what_one_device_would(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So no bit depends on how many there are; a program's test compares them."""
    small = settings.small_settings(**{"search.source_tokens_per_batch": 96})
    vocabulary = settings.letters_vocabulary()
    by_device: list[np.ndarray] = []
    whole: list[np.ndarray] = []
    lines = [" ".join("abcdefgh"[: n % 8]) + " hello" * (n % 3) for n in range(90)]

    def translate(record: list[np.ndarray], *, is_divided: bool) -> list[str]:
        translator = LineTranslator(
            small, vocabulary, batch_for_each_device=not is_divided
        )
        echo.echoing(translator, monkeypatch)
        repeat_source = translator.search

        def search(params: object, rows: generate.Rows) -> types.Hypotheses:
            record.extend(
                [np.concatenate(rows.source)] if is_divided else list(rows.source)
            )
            return repeat_source(params, rows)

        monkeypatch.setattr(translator, "search", search)
        return translator.translate(None, lines)

    assert translate(whole, is_divided=True) == translate(by_device, is_divided=False)
    batches = [batch for batch in by_device if batch.any()]
    assert len(batches) > 8
    for batch, expected in zip(batches, whole, strict=True):
        # Divided among eight devices, a batch has padding at its end.
        assert not expected[len(batch) :].any()
        np.testing.assert_array_equal(batch, expected[: len(batch)])


def test_the_search_fits_the_positions_of_every_member(tmp_path: pathlib.Path) -> None:
    learned = {"model.positional_encoding": "learned", "model.max_positions": 21}
    [second] = make_translator(**learned).members
    translator = make_translator()
    together = Translator(
        translator.config,
        translator.vocabulary,
        members=[*translator.members, second],
    )
    with pytest.raises(ValueError, match=r"model 2 of 2: config\.model\.max_positions"):
        back_translation.back_translate(
            together,
            write_input(tmp_path),
            tmp_path / "out",
            search={"max_source_tokens": 17},
        )
    assert not (tmp_path / "out").exists()


def test_another_form_of_text_does_not_go_on(
    tmp_path: pathlib.Path, model: Echo
) -> None:
    path, manifest = write_input(tmp_path), tmp_path / "out/manifest.json"
    back_translation.back_translate(make_translator(), path, tmp_path / "out")
    tokenized = make_translator(**{"data.text_form": "tokenized"})
    with pytest.raises(ValueError, match="begun with text_form='detokenized', not 'to"):
        back_translation.back_translate(tokenized, path, tmp_path / "out")
    record = json.loads(manifest.read_text())
    # Older manifests lack it.
    del record["settings"]["text_form"]
    manifest.write_text(json.dumps(record))
    num_calls = model.num_calls
    back_translation.back_translate(tokenized, path, tmp_path / "out")
    assert model.num_calls == num_calls
    assert json.loads(manifest.read_text())["settings"]["text_form"] == "tokenized"
