"""Generation settings of transformers, as it takes them and as we do."""

import json
import pathlib
import re
from typing import Any

import pytest

from tests import settings
from vaswani_jax.data import vocabulary
from vaswani_jax.exchange import marian, marian_files, marian_settings

PATH = pathlib.Path("generation_config.json")
THEIRS = {"pad_token_id": 9, "decoder_start_token_id": 9, "eos_token_id": 0}


def taken(**generation: Any) -> tuple[dict[str, Any], list[str]]:
    return marian_settings.search(generation, THEIRS, PATH)


def lengths(**generation: Any) -> set[int]:
    """Tokens, the end mark among them, of many outputs that transformers draws."""
    torch = pytest.importorskip("torch", reason="torch is not installed: .[oracles]")
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: .[oracles]"
    )
    torch.manual_seed(1)
    sides = {
        f"{side}_{key}": 1
        for side in ("encoder", "decoder")
        for key in ("layers", "attention_heads", "ffn_dim")
    }
    values = {"vocab_size": 10, "d_model": 2, "forced_eos_token_id": None}
    own = transformers.MarianConfig(**THEIRS, **values, **sides)
    network = transformers.MarianMTModel(own).eval()
    wanted = transformers.GenerationConfig(**THEIRS, **generation, do_sample=True)
    source = torch.zeros((200, 1), dtype=torch.long)
    outputs = network.generate(source, generation_config=wanted)[:, 1:].tolist()
    return {row.index(0) + 1 if 0 in row else len(row) for row in outputs}


@pytest.mark.parametrize(
    "generation",
    [
        {"min_length": 4, "max_length": 8},
        {"min_new_tokens": 4, "max_new_tokens": 8},
        {"min_new_tokens": 2, "max_new_tokens": 5, "min_length": 4, "max_length": 8},
        {"min_length": 0, "max_new_tokens": 3},
    ],
)
def test_limits_of_the_length_are_theirs(generation: dict[str, int]) -> None:
    search, notes = taken(**generation)
    found = lengths(**generation)
    assert (search["min_tokens"], search["max_tokens"]) == (min(found), max(found))
    assert not notes


def test_what_is_drawn_is_theirs() -> None:
    drawn = {"temperature": 0.7, "top_k": 8, "top_p": 0.9}
    found, notes = taken(do_sample=True, **drawn)
    assert found.items() >= {"sampling": True, **drawn}.items() and not notes
    # What transformers takes where nothing is said.
    found, _ = taken(do_sample=True)
    assert found.items() >= {"temperature": 1.0, "top_k": 50, "top_p": 1.0}.items()
    found, notes = taken(**drawn)
    assert found.items() >= marian_settings.UNSAMPLED.items() and not notes
    _, [note] = taken(do_sample=True, num_beams=4)
    assert "num_beams=4" in note


def saved(directory: pathlib.Path, **changes: Any) -> dict[str, Any]:
    """What an export's generation_config.json says of a search."""
    pytest.importorskip("safetensors", reason="safetensors is not installed: .[export]")
    search = {f"search.{key}": value for key, value in changes.items()}
    small = settings.small_settings(**search, **{"model.d_v": 4, "data.vocab_size": 16})
    subwords = vocabulary.learn_vocabulary(["a b c d e f g h"] * 20, small.data)
    params = settings.random_params(small.model, vocab_size=subwords.size, seed=1)
    marian.save(directory, params, small, subwords)
    return dict(json.loads((directory / "generation_config.json").read_text()))


def test_an_export_keeps_the_search(tmp_path: pathlib.Path) -> None:
    common = {"min_tokens": 4, "max_tokens": 8, "no_repeat_ngram": 3}
    found = saved(tmp_path, **common, length_penalty_form="power", beam_size=5)
    assert found["no_repeat_ngram_size"] == 3 and found["num_beams"] == 5
    assert "do_sample" not in found
    limits = {key: found[key] for key in ("min_length", "max_length")}
    outputs = lengths(**limits)
    assert (min(outputs), max(outputs)) == (4, 8)
    drawn = {"temperature": 0.7, "top_k": 8, "top_p": 0.9}
    found = saved(tmp_path, sampling=True, **drawn)
    assert found.items() >= {"do_sample": True, "num_beams": 1, **drawn}.items()


def test_a_penalty_that_transformers_has_not_is_told() -> None:
    def told(**changes: Any) -> list[str]:
        search = {f"search.{key}": value for key, value in changes.items()}
        small = settings.small_settings(**search)
        return marian_settings.unwritten(small.search)

    # That outputs have one bound, whatever their sources, is always told.
    _, note = told(length_penalty=0.6, length_penalty_form="paper")
    assert "config.search.length_penalty=0.6" in note
    assert len(told(length_penalty=0.0, length_penalty_form="paper")) == 1
    assert len(told(length_penalty=0.6, length_penalty_form="power")) == 1
    assert len(told(length_penalty=0.6, sampling=True)) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("encoder_no_repeat_ngram_size", 3),
        ("exponential_decay_length_penalty", [5, 1.5]),
        ("sequence_bias", [[[3], -10.0]]),
        ("repetition_penalty", 1.2),
        ("renormalize_logits", True),
        ("bad_words_ids", [[9], [3]]),
        ("forced_eos_token_id", 3),
        ("of_some_later_version", 1),
    ],
)
def test_what_changes_the_output_or_is_unknown_is_told(key: str, value: Any) -> None:
    _, [note] = taken(**{key: value})
    assert f"{key}={value!r}" in note


def test_what_changes_nothing_is_not_told() -> None:
    _, notes = taken(
        **THEIRS,
        bad_words_ids=[[9]],
        forced_eos_token_id=0,
        early_stopping=None,
        repetition_penalty=1.0,
        suppress_tokens=[],
        use_cache=True,
        transformers_version="4.46.0",
    )
    assert not notes


@pytest.mark.parametrize("key", ["eos_token_id", "decoder_start_token_id"])
def test_marks_that_differ_are_refused(key: str) -> None:
    taken(**{key: [THEIRS[key]]})
    with pytest.raises(ValueError, match=rf"generation_config.json: {key} must be"):
        taken(**{key: 5})


@pytest.mark.parametrize(
    ("key", "value", "kind"),
    [
        ("num_beams", [4], "int"),
        ("num_beams", "x", "int"),
        ("num_beams", 4.7, "int"),
        ("num_beams", True, "int"),
        ("do_sample", "false", "bool"),
        ("length_penalty", True, "float"),
        ("max_length", "20", "int"),
        ("max_new_tokens", 5.0, "int"),
        ("top_p", "0.9", "float"),
    ],
)
def test_values_of_another_type_are_refused_with_their_place(
    key: str, value: Any, kind: str
) -> None:
    said = re.escape(f"{key} must be of type {kind}, got {value!r}")
    with pytest.raises(ValueError, match=f"^generation_config.json: {said}"):
        taken(**{key: value})
    with pytest.raises(ValueError, match=f"^config.json: {said}"):
        marian_settings.search({}, {**THEIRS, key: value}, PATH)
    assert taken(length_penalty=1)[0]["length_penalty"] == 1.0


def test_odd_forbidden_words_are_told() -> None:
    assert "bad_words_ids=7" in taken(bad_words_ids=7)[1][0]


@pytest.mark.parametrize("value", [["relu"], {}, None])
def test_an_odd_activation_is_refused(value: Any) -> None:
    sides = {
        f"{side}_{key}": 1
        for side in ("encoder", "decoder")
        for key in ("layers", "attention_heads", "ffn_dim")
    }
    values = {"model_type": "marian", "scale_embedding": True, "d_model": 2, **sides}
    values |= {"max_position_embeddings": 8, "activation_function": value}
    with pytest.raises(ValueError, match=r"config.json: activation_function .* got"):
        marian_settings.check(values, {}, PATH.with_name("config.json"))


def test_an_id_has_one_spelling(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "vocab.json"
    path.write_text('{"<unk>": 0, "a": 1, "b": 1}')
    with pytest.raises(ValueError, match=r"one spelling, got 'a' and 'b' of 1"):
        marian_files.names(tmp_path, rows=3)
    path.write_text('{"<unk>": 0, "a": [1]}')
    with pytest.raises(ValueError, match=r"from 0 to 2, .* got \[1\] of 'a'"):
        marian_files.names(tmp_path, rows=3)
    path.write_text('{"<unk>": 0, "a": 2}')
    assert marian_files.names(tmp_path, rows=3) == ["<unk>", "<unused_1>", "a"]
