"""The Python API: from a workdir to translations, scores and attention."""

import pathlib
from typing import Any

import jax
import numpy as np
import pytest

import vaswani_jax
from tests import interpreter, settings
from vaswani_jax.checkpoints import average, run_record, store
from vaswani_jax.core import config
from vaswani_jax.data import prepared
from vaswani_jax.exchange import formats

LINES = ["a b c", "", "d e f g", "h a a"]


def write_run(workdir: pathlib.Path, *, seed: int = 1, **overrides: Any) -> None:
    """Write a workdir of a model that has learned nothing."""
    # A search compiles one loop for its first 16 tokens, and more for longer outputs.
    run_settings = settings.small_settings(**{"search.max_tokens": 16, **overrides})
    vocabulary = prepared.open_or_prepare(
        run_settings,
        workdir / "data",
        rebuild=False,
    ).vocabulary
    params = settings.random_params(
        run_settings.model, vocab_size=vocabulary.size, seed=seed
    )
    checkpoint = store.Checkpoint(
        7,
        {"params": params},
        {
            "vocabulary": vocabulary.fingerprint,
            "config": config.to_dict(run_settings),
            "averaged": [6, 7],
        },
    )
    average.save_average(
        workdir, checkpoint, settings=run_settings, vocabulary=vocabulary
    )
    run_record.record_start(workdir, run_settings, step=0, changes=[])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    workdir = tmp_path_factory.mktemp("runs") / "small"
    write_run(workdir)
    return workdir


@pytest.fixture(scope="module")
def translator(run: pathlib.Path) -> vaswani_jax.Translator:
    return vaswani_jax.load(run)


def test_a_translator_has_public_parts(translator: vaswani_jax.Translator) -> None:
    assert isinstance(translator.vocabulary, vaswani_jax.Vocabulary)
    [member] = translator.members
    assert isinstance(member, vaswani_jax.Member)
    assert isinstance(member.checkpoint, vaswani_jax.Checkpoint)


def test_a_translation_loads_no_training_code_and_no_orbax(run: pathlib.Path) -> None:
    unused = "vaswani_jax.training orbax tensorstore optax fsspec sacrebleu pandas"
    program = (
        "import sys, vaswani_jax\n"
        f"translator = vaswani_jax.load({str(run)!r})\n"
        "assert 'flax' not in sys.modules, 'a model is traced where it translates'\n"
        "assert translator.translate(['a b']) != []\n"
        f"print([m for m in sys.modules if m in {unused.split()}])"
    )
    assert interpreter.output_of(program) == "[]"


def test_an_ensemble_of_one_model_twice_is_that_model(
    run: pathlib.Path, translator: vaswani_jax.Translator
) -> None:
    names: list[str | pathlib.Path] = [f"{run}@averaged", run]
    for second in names:
        twice = vaswani_jax.load(run, ensemble=[second])
        assert len(twice.members) == 2
        assert twice.translate(LINES) == translator.translate(LINES)


@pytest.fixture(scope="module")
def file(
    translator: vaswani_jax.Translator, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """The model of the run in one file."""
    return translator.save(tmp_path_factory.mktemp("files") / "small.safetensors")


def test_a_file_translates_as_the_run_that_it_came_from(
    run: pathlib.Path, translator: vaswani_jax.Translator, file: pathlib.Path
) -> None:
    loaded = vaswani_jax.load(file)
    assert loaded.config == translator.config == vaswani_jax.load_config(file)
    assert loaded.hypotheses(LINES) == translator.hypotheses(LINES)
    short = vaswani_jax.load(str(file), overrides={"search.max_tokens": 1})
    assert short.config.search.max_tokens == 1
    # As one model of several.
    for first, second in ((file, run), (run, file)):
        twice = vaswani_jax.load(first, ensemble=[str(second)])
        assert twice.translate(LINES) == translator.translate(LINES)
        with pytest.raises(ValueError, match="an ensemble of 2 models"):
            twice.save(file.with_name("two.safetensors"))


def test_a_file_in_bfloat16_is_half_as_large_and_computes_as_configured(
    translator: vaswani_jax.Translator, tmp_path: pathlib.Path
) -> None:
    half = vaswani_jax.load(
        translator.save(tmp_path / "a.safetensors", dtype="bfloat16")
    )
    assert half.config == translator.config
    for params, original in zip(
        jax.tree.leaves(half.params), jax.tree.leaves(translator.params), strict=True
    ):
        assert params.dtype == np.float32
        np.testing.assert_allclose(params, original, rtol=2**-8)
    # Rounded parameters stay what they are.
    again = vaswani_jax.load(half.save(tmp_path / "b.safetensors"))
    jax.tree.map(np.testing.assert_array_equal, again.params, half.params)


def test_a_file_that_is_no_model_is_refused(
    file: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "none.safetensors"
    with pytest.raises(FileNotFoundError, match=f"^there is no file {path}$"):
        vaswani_jax.load(path)
    path.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=f"^{path} is .* cut off or damaged: it has "):
        vaswani_jax.load(path)
    with pytest.raises(ValueError, match=r"has one checkpoint, averaged, got best"):
        vaswani_jax.load(file, checkpoint="best")


def test_a_marian_directory_translates_as_the_run_that_it_came_from(
    tmp_path: pathlib.Path,
) -> None:
    write_run(tmp_path / "run", **{"model.d_v": 4})
    translator = vaswani_jax.load(tmp_path / "run")
    directory = tmp_path / "marian"
    formats.save(directory, translator, form="marian")
    search = {
        f"search.{key}": value
        for key, value in config.to_dict(translator.config)["search"].items()
    }
    imported = vaswani_jax.load(directory, overrides=search)
    assert imported.config.data.target_locale == "de"
    for original, copy in zip(
        translator.hypotheses(LINES), imported.hypotheses(LINES), strict=True
    ):
        assert original[0].text == copy[0].text
        np.testing.assert_allclose(original[0].score, copy[0].score, rtol=1e-4)
    with pytest.raises(ValueError, match=r"config\.model\.d_ff cannot be set"):
        vaswani_jax.load(directory, overrides={"model.d_ff": 9})
    with pytest.raises(ValueError, match="import it"):
        vaswani_jax.load(directory, ensemble=[str(tmp_path / "run")])


def test_a_training_text_that_corpora_replace_is_refused() -> None:
    corpus = {"name": "news", "source": "news.en", "target": "news.de"}
    mixed = {
        "data.source_locale": "en",
        "data.target_locale": "de",
        "data.corpora": [corpus],
    }
    assert vaswani_jax.load_config("own_text", mixed).data.train_source
    with pytest.raises(ValueError, match=r"train_target=own\.de is not read with"):
        vaswani_jax.load_config("own_text", {**mixed, "data.train_target": "own.de"})


def test_overrides_of_load_and_of_a_call_change_the_search(run: pathlib.Path) -> None:
    short = vaswani_jax.load(run, overrides={"search.max_tokens": 1})
    assert short.config.search.max_tokens == 1
    for [hypothesis] in short.hypotheses(LINES):
        assert len(hypothesis.tokens) <= 1
    for [hypothesis] in short.hypotheses(["a b c"], max_tokens=0, min_tokens=3):
        assert len(hypothesis.tokens) >= 3


def test_the_name_of_a_run_may_name_its_checkpoint(run: pathlib.Path) -> None:
    for name in (f"{run}@averaged", f"{run}/averaged/7"):
        [member] = vaswani_jax.load(name).members
        assert member.checkpoint.step == 7
    # Not every program that loads a model has a flag for its checkpoint.
    message = f"^no checkpoint 'best': there is no {run}/best; pass RUN@averaged$"
    with pytest.raises(ValueError, match=message):
        vaswani_jax.load(f"{run}@best")
    with pytest.raises(ValueError, match=f"@averaged/8: there is no {run}/averaged/8$"):
        vaswani_jax.load(f"{run}/averaged/8")
    message = "@best names a checkpoint, and so does checkpoint='newest'$"
    with pytest.raises(ValueError, match=message):
        vaswani_jax.load(f"{run}@best", checkpoint="newest")


def test_a_step_may_be_a_number_and_an_ensemble_is_a_list(run: pathlib.Path) -> None:
    with pytest.raises(ValueError, match="no checkpoint '8': there is no "):
        vaswani_jax.load(run, checkpoint=8)
    message = "ensemble must be a list of runs, got the string 'runs/b'"
    with pytest.raises(TypeError, match=message):
        vaswani_jax.load(run, ensemble="runs/b")


def test_lines_may_come_from_an_iterator(translator: vaswani_jax.Translator) -> None:
    expected = translator.translate(LINES)
    assert translator.translate(iter(LINES)) == expected
    pairs = zip(LINES, expected, strict=True)
    sources, targets = map(iter, zip(*pairs, strict=True))
    assert translator.score(sources, targets) == translator.score(LINES, expected)
    attended = translator.attend(iter(LINES), np.array(expected))
    assert [pair.text for pair in attended] == expected


def test_what_is_no_run_is_refused(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    message = f"^{tmp_path}/nothing is not a directory; name that of a run$"
    with pytest.raises(ValueError, match=message):
        vaswani_jax.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match=f"^{tmp_path} holds no run: it has no"):
        vaswani_jax.load(tmp_path)
    with pytest.raises(ValueError, match="no checkpoint 'best'"):
        vaswani_jax.load(run, checkpoint="best")
    with pytest.raises(ValueError, match=r"unknown key config\.search\.beem_size"):
        vaswani_jax.load(run, overrides={"search.beem_size": 1})
