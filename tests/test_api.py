"""The Python API: from a workdir to translations, scores and attention."""

import pathlib
import subprocess
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import vaswani_jax
from tests import reference, settings
from vaswani_jax.checkpoints import average, run_record, store
from vaswani_jax.core import config, types
from vaswani_jax.data import marian_vocabulary, prepared
from vaswani_jax.exchange import marian

LINES = ["a b c", "", "d e f g", "h a a"]


def write_run(workdir: pathlib.Path, *, seed: int = 1, **overrides: Any) -> None:
    """Write a workdir of a model that has learned nothing."""
    run_settings = settings.small_settings(**{"model.num_layers": 2, **overrides})
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
        },
    )
    average.save_average(workdir, checkpoint)
    run_record.record_start(workdir, run_settings, step=0, changes=[])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    workdir = tmp_path_factory.mktemp("runs") / "small"
    write_run(workdir)
    return workdir


@pytest.fixture(scope="module")
def translator(run: pathlib.Path) -> vaswani_jax.Translator:
    return vaswani_jax.load(run)


def test_public_names_are_there_and_documented() -> None:
    assert set(vaswani_jax.__all__) <= set(dir(vaswani_jax))
    for name in set(vaswani_jax.__all__) - {"__version__"}:
        assert getattr(vaswani_jax, name).__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        vaswani_jax.lode  # noqa: B018


def test_importing_the_package_loads_no_jax() -> None:
    program = "import vaswani_jax, sys; print('jax' in sys.modules)"
    assert output_of(program) == "False"


def test_a_translation_loads_no_training_code(run: pathlib.Path) -> None:
    program = (
        "import sys, vaswani_jax\n"
        f"translator = vaswani_jax.load({str(run)!r})\n"
        "assert translator.translate(['a b']) != []\n"
        "print([m for m in sys.modules if m.startswith('vaswani_jax.training')])"
    )
    assert output_of(program) == "[]"


def output_of(program: str) -> str:
    """Return what a Python program prints."""
    completed = subprocess.run(
        [sys.executable, "-c", program],
        cwd=pathlib.Path(vaswani_jax.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    return completed.stdout.strip()


def test_translations_are_the_best_hypotheses(
    translator: vaswani_jax.Translator,
) -> None:
    texts = translator.translate(LINES)
    hypotheses = translator.hypotheses(LINES, n_best=3, beam_size=4)
    assert len(texts) == len(hypotheses) == len(LINES)
    assert texts[1] == ""
    assert hypotheses[1] == [vaswani_jax.Hypothesis("", 0.0, (), ())]
    for n_best in (hypotheses[0], hypotheses[2], hypotheses[3]):
        assert 2 <= len(n_best) <= 3
        scores = [hypothesis.score for hypothesis in n_best]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in n_best:
            assert translator.vocabulary.decode(hypothesis.outputs[0].ids) == (
                hypothesis.text
            )
    same_beam = translator.hypotheses(LINES, beam_size=3)
    assert [n_best[0].text for n_best in same_beam] == texts


def test_scores_are_those_of_the_reference_model(
    translator: vaswani_jax.Translator,
) -> None:
    targets = ["g f", "a", "", "e e d"]
    scores = translator.score(LINES, targets)
    params = reference.to_float64(translator.params)
    for line, target, score in zip(LINES, targets, scores, strict=True):
        source, target_in, target_out = ids_of(translator, line, target)
        logits = reference.logits(
            params, source, target_in, model=translator.config.model
        )
        probabilities = reference.softmax(logits)
        expected = np.log(probabilities[np.arange(len(target_out)), target_out])
        np.testing.assert_allclose(score.log_probs, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(score.log_prob, expected.sum(), rtol=1e-4)
        assert score.tokens == names(translator, target_out)


def ids_of(
    translator: vaswani_jax.Translator, line: str, target: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    [source] = translator.vocabulary.encode([line])
    [output] = translator.vocabulary.encode([target])
    return (
        np.array([*source, types.EOS_ID]),
        np.array([types.BOS_ID, *output]),
        np.array([*output, types.EOS_ID]),
    )


def names(translator: vaswani_jax.Translator, ids: np.ndarray) -> tuple[str, ...]:
    return tuple(translator.vocabulary.subword(int(token)) for token in ids)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_attention_is_that_of_the_reference_model(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, position: str
) -> None:
    write_run(tmp_path / "run", **{"model.layer_norm_position": position})
    translator = vaswani_jax.load(tmp_path / "run")
    line, target = "a b c d", "h g"
    source, target_in, target_out = ids_of(translator, line, target)
    expected: list[np.ndarray] = []

    def record(
        Q: np.ndarray, K: np.ndarray, V: np.ndarray, may_look: np.ndarray
    ) -> np.ndarray:
        scores = Q @ K.T / np.sqrt(K.shape[1])
        expected.append(reference.softmax(np.where(may_look, scores, -np.inf)))
        return expected[-1] @ V

    monkeypatch.setattr(reference, "attention", record)
    model = translator.config.model
    params = reference.to_float64(translator.params)
    reference.logits(params, source, target_in, model=model)

    attention = translator.attention(line, target)
    N, H, S, T = model.num_layers, model.num_heads, len(source), len(target_in)
    assert attention.source == names(translator, source)
    assert attention.target_in == names(translator, target_in)
    assert attention.target_out == names(translator, target_out)
    assert attention.encoder.shape == (N, H, S, S)
    assert attention.decoder.shape == (N, H, T, T)
    assert attention.memory.shape == (N, H, T, S)
    # The encoder's layers first, head by head; then each decoder layer's two.
    weights = [*attention.encoder.reshape(N * H, S, S)]
    for layer in range(N):
        weights += [*attention.decoder[layer], *attention.memory[layer]]
    for one, exact in zip(weights, expected, strict=True):
        np.testing.assert_allclose(one, exact, rtol=1e-4, atol=1e-5)


def test_attention_without_a_target_is_that_of_the_translation(
    translator: vaswani_jax.Translator,
) -> None:
    [[hypothesis]] = translator.hypotheses(["a b c"])
    attention = translator.attention("a b c")
    assert attention.target_out == hypothesis.tokens
    empty = translator.attention("")
    assert (empty.source, empty.target_out) == (("</s>",), ("</s>",))


def test_an_ensemble_of_one_model_twice_is_that_model(
    run: pathlib.Path, translator: vaswani_jax.Translator
) -> None:
    twice = vaswani_jax.load(run, ensemble=[f"{run}@averaged"])
    assert twice.translate(LINES) == translator.translate(LINES)
    np.testing.assert_allclose(
        twice.attention("a b", "c").memory,
        translator.attention("a b", "c").memory,
        rtol=1e-5,
    )
    with pytest.raises(ValueError, match="an ensemble of 2 models has no single"):
        twice.params  # noqa: B018


def test_module_and_params_compute_logits(translator: vaswani_jax.Translator) -> None:
    source, target_in, _ = map(jnp.asarray, ids_of(translator, "a b", "c"))
    logits: Any = translator.module.apply(
        {"params": translator.params}, source[None], target_in[None], deterministic=True
    )
    assert logits.shape == (1, len(target_in), translator.vocabulary.size)


def test_a_marian_directory_translates_as_the_run_that_it_came_from(
    tmp_path: pathlib.Path,
) -> None:
    pytest.importorskip("safetensors")
    write_run(tmp_path / "run", **{"model.d_v": 4})
    translator = vaswani_jax.load(tmp_path / "run")
    directory = tmp_path / "marian"
    marian.save(directory, translator.params, translator.config, translator.vocabulary)
    for name, model in zip(
        marian_vocabulary.FILES, translator.vocabulary.models, strict=True
    ):
        (directory / name).write_bytes(model)
    search = {
        f"search.{key}": value
        for key, value in config.to_dict(translator.config)["search"].items()
    }
    imported = vaswani_jax.load(directory, overrides=search)
    assert imported.config.data.target_locale == "de"
    for ours, theirs in zip(
        translator.hypotheses(LINES), imported.hypotheses(LINES), strict=True
    ):
        assert ours[0].text == theirs[0].text
        np.testing.assert_allclose(ours[0].score, theirs[0].score, rtol=1e-4)
    with pytest.raises(ValueError, match=r"config\.model\.d_ff: .* decides that"):
        vaswani_jax.load(directory, overrides={"model.d_ff": 9})
    with pytest.raises(ValueError, match="import it"):
        vaswani_jax.load(directory, ensemble=[str(tmp_path / "run")])


def test_overrides_of_load_and_of_a_call_change_the_search(run: pathlib.Path) -> None:
    one = vaswani_jax.load(run, overrides={"search.max_tokens": 1})
    assert one.config.search.max_tokens == 1
    for [hypothesis] in one.hypotheses(LINES):
        assert len(hypothesis.tokens) <= 1
    for [hypothesis] in one.hypotheses(["a b c"], max_tokens=0, min_tokens=3):
        assert len(hypothesis.tokens) >= 3


@pytest.mark.parametrize("method", ["translate", "hypotheses"])
def test_a_string_is_no_list_of_lines(
    translator: vaswani_jax.Translator, method: str
) -> None:
    with pytest.raises(TypeError, match=r"lines must be a list of strings.*'a b'"):
        getattr(translator, method)("a b")


def test_wrong_arguments_are_refused_with_the_rule(
    translator: vaswani_jax.Translator,
) -> None:
    for arguments, sentence in (
        ({"n_best": 4}, "n_best=4 is more than config.search.beam_size=3"),
        ({"n_best": 0}, "n_best must be at least 1, got 0"),
        ({"beam": 2}, "unknown key config.search.beam; did you mean"),
        ({"beam_size": 0}, "config.search.beam_size"),
        ({"prefixes": ["a"]}, "lines and prefixes must be of one length"),
    ):
        with pytest.raises(ValueError, match=sentence):
            translator.hypotheses(["a", "b"], **arguments)
    with pytest.raises(ValueError, match="sources and targets must be of one length"):
        translator.score(["a"], [])
    with pytest.raises(ValueError, match="target, line 2: 61 tokens are more than"):
        translator.score(["a", "b"], ["a", "b " * 30])
    with pytest.raises(ValueError, match="source, line 1: 61 tokens are more than"):
        translator.attention("b " * 30)


def test_what_is_no_run_is_refused(run: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json cannot be read: No such file"):
        vaswani_jax.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="no checkpoint 'best'"):
        vaswani_jax.load(run, checkpoint="best")
    with pytest.raises(ValueError, match=r"unknown key config\.search\.beem_size"):
        vaswani_jax.load(run, overrides={"search.beem_size": 1})
