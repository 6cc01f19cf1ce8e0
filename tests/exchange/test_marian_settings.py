"""Generation settings of transformers mean here what they mean there."""

import json
import pathlib
import re
from typing import Any

import pytest

from tests import settings
from vaswani_jax.exchange import marian_export, marian_settings

PATH = pathlib.Path("generation_config.json")
MARKS = {"pad_token_id": 9, "decoder_start_token_id": 9, "eos_token_id": 0}


def imported(**generation: Any) -> marian_settings.ImportedSearch:
    return marian_settings.import_search(generation, MARKS, path=PATH)


def lengths(**generation: Any) -> set[int]:
    """Return the lengths of outputs that transformers draws, end marks counted."""
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
    model = transformers.MarianConfig(**MARKS, **values, **sides)
    network = transformers.MarianMTModel(model).eval()
    sampling = transformers.GenerationConfig(**MARKS, **generation, do_sample=True)
    source = torch.zeros((200, 1), dtype=torch.long)
    outputs = network.generate(source, generation_config=sampling)[:, 1:].tolist()
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
def test_limits_of_the_length_are_those_of_transformers(
    generation: dict[str, int],
) -> None:
    search, notes = imported(**generation)
    drawn = lengths(**generation)
    assert (search["min_tokens"], search["max_tokens"]) == (min(drawn), max(drawn))
    assert not notes


def test_settings_of_sampling_are_those_of_transformers() -> None:
    drawn = {"temperature": 0.7, "top_k": 8, "top_p": 0.9}
    search, notes = imported(do_sample=True, **drawn)
    assert search.items() >= {"sampling": True, **drawn}.items() and not notes
    # The defaults of transformers.
    search, _ = imported(do_sample=True)
    assert search.items() >= {"temperature": 1.0, "top_k": 50, "top_p": 1.0}.items()
    search, notes = imported(**drawn)
    assert search.items() >= marian_settings.UNSAMPLED.items() and not notes
    _, [note] = imported(do_sample=True, num_beams=4)
    assert "num_beams=4" in note


def saved(directory: pathlib.Path, **changes: Any) -> dict[str, Any]:
    """Return an export's generation_config.json."""
    search = {f"search.{key}": value for key, value in changes.items()}
    small = settings.small_settings(**search, **{"model.d_v": 4, "data.vocab_size": 16})
    vocabulary = settings.learn_vocabulary(["a b c d e f g h"] * 20, small.data)
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=1)
    marian_export.save(directory, params=params, settings=small, vocabulary=vocabulary)
    return dict(json.loads((directory / "generation_config.json").read_text()))


def test_an_export_keeps_the_search(tmp_path: pathlib.Path) -> None:
    common = {"min_tokens": 4, "max_tokens": 8, "no_repeat_ngram": 3}
    generation = saved(tmp_path, **common, length_penalty_form="power", beam_size=5)
    assert generation["no_repeat_ngram_size"] == 3 and generation["num_beams"] == 5
    assert "do_sample" not in generation
    # The search of `export`'s comparison with transformers.
    assert generation["early_stopping"] == "never"
    limits = {key: generation[key] for key in ("min_length", "max_length")}
    outputs = lengths(**limits)
    assert (min(outputs), max(outputs)) == (4, 8)
    drawn = {"temperature": 0.7, "top_k": 8, "top_p": 0.9}
    generation = saved(tmp_path, sampling=True, **drawn)
    assert generation.items() >= {"do_sample": True, "num_beams": 1, **drawn}.items()


def test_a_generous_limit_allows_no_longer_outputs_than_our_search() -> None:
    search = settings.small_settings(**{"search.max_tokens": 2000}).search
    longest = search.max_source_tokens + search.max_extra_tokens
    assert longest < 2000
    assert marian_settings.export_search(search)["max_length"] == longest + 1


def test_a_penalty_that_transformers_has_not_is_noted() -> None:
    def notes(**changes: Any) -> list[str]:
        search = {f"search.{key}": value for key, value in changes.items()}
        small = settings.small_settings(**search)
        return marian_settings.unexported(small.search)

    # That outputs have one bound, whatever their sources, is always noted.
    _, note = notes(length_penalty=0.6, length_penalty_form="paper")
    assert "config.search.length_penalty=0.6" in note
    assert len(notes(length_penalty=0.0, length_penalty_form="paper")) == 1
    assert len(notes(length_penalty=0.6, length_penalty_form="power")) == 1
    assert len(notes(length_penalty=0.6, sampling=True)) == 1


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
def test_what_changes_the_output_or_is_unknown_is_noted(key: str, value: Any) -> None:
    _, [note] = imported(**{key: value})
    assert f"{key}={value!r}" in note


def test_what_changes_nothing_is_not_noted() -> None:
    _, notes = imported(
        **MARKS,
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
    imported(**{key: [MARKS[key]]})
    with pytest.raises(ValueError, match=rf"generation_config.json: {key} must be"):
        imported(**{key: 5})


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
def test_values_of_another_type_are_refused_with_their_file(
    key: str, value: Any, kind: str
) -> None:
    message = re.escape(f"{key} must be of type {kind}, got {value!r}")
    with pytest.raises(ValueError, match=f"^generation_config.json: {message}"):
        imported(**{key: value})
    with pytest.raises(ValueError, match=f"^config.json: {message}"):
        marian_settings.import_search(None, {**MARKS, key: value}, path=PATH)
    assert imported(length_penalty=1)[0]["length_penalty"] == 1.0


def test_odd_forbidden_words_are_noted() -> None:
    assert "bad_words_ids=7" in imported(bad_words_ids=7)[1][0]


# A model that can be imported, of equal depths.
BASE = {
    **{"model_type": "marian", "scale_embedding": True, "d_model": 8},
    **{"encoder_layers": 6, "decoder_layers": 6},
    **{"encoder_attention_heads": 2, "decoder_attention_heads": 2},
    **{"encoder_ffn_dim": 16, "decoder_ffn_dim": 16},
    **{"max_position_embeddings": 8, "activation_function": "relu"},
}


def imported_model(**changes: Any) -> dict[str, Any]:
    """Return our settings of a config.json; a change to ... leaves out the key."""
    values = {k: v for k, v in (BASE | changes).items() if v is not ...}
    path = PATH.with_name("config.json")
    values = marian_settings.resolve_aliases(values, path=path)
    marian_settings.check_importable(values, {}, path=path)
    return marian_settings.import_model(values)


# What config.json says of depths and sizes, and the layers of encoder and decoder.
IMPORTED_DEPTHS: list[tuple[dict[str, Any], tuple[int, int]]] = [
    ({}, (6, 6)),
    ({"decoder_layers": 1}, (6, 1)),
    ({"decoder_layers": 2}, (6, 2)),
    ({"encoder_layers": 1}, (1, 6)),
    ({"num_hidden_layers": 6, "decoder_layers": 2}, (6, 2)),
    ({"num_hidden_layers": 4, "encoder_layers": ...}, (4, 6)),
    ({"hidden_size": 8, "num_attention_heads": 2}, (6, 6)),
    ({"encoder_layerdrop": 0.0, "decoder_layerdrop": 0}, (6, 6)),
    ({"encoder_layerdrop": 0.2, "decoder_layers": 3}, (6, 3)),
    ({"decoder_layerdrop": 0.1, "decoder_layers": 3}, (6, 3)),
]
SAME = "must be the same number, got"
REFUSED_DEPTHS: list[tuple[dict[str, Any], str]] = [
    *(
        ({f"{side}_layers": value}, f"{side}_layers must be a positive number, got")
        for side in ("encoder", "decoder")
        for value in (0, -1, 2.0, True, "2", None, ...)
    ),
    (
        {"num_hidden_layers": 5},
        "num_hidden_layers is another name of encoder_layers, got 5 and 6",
    ),
    ({"hidden_size": 16}, "hidden_size is another name of d_model, got 16 and 8"),
    (
        {"num_attention_heads": 4},
        "num_attention_heads is another name of encoder_attention_heads, got 4 and 2",
    ),
    (
        {"decoder_attention_heads": 4},
        f"encoder_attention_heads and decoder_attention_heads {SAME} 2 and 4",
    ),
    (
        {"encoder_ffn_dim": 32},
        f"encoder_ffn_dim and decoder_ffn_dim {SAME} 32 and 16",
    ),
    ({"decoder_ffn_dim": ...}, f"encoder_ffn_dim and decoder_ffn_dim {SAME} 16 and"),
    (
        {"encoder_attention_heads": 3, "decoder_attention_heads": 3},
        "d_model must be a multiple of encoder_attention_heads, got 8 and 3",
    ),
    ({"encoder_layerdrop": "0.1"}, "encoder_layerdrop must be a number, got '0.1'"),
    ({"decoder_layerdrop": None}, "decoder_layerdrop must be a number, got None"),
    ({"decoder_layers": 2, "normalize_before": True}, "normalize_before must be False"),
]


@pytest.mark.parametrize(("changes", "depths"), IMPORTED_DEPTHS)
def test_every_depth_is_imported(
    changes: dict[str, Any], depths: tuple[int, int]
) -> None:
    values = {f"model.{k}": v for k, v in imported_model(**changes).items()}
    model = settings.small_settings(**values).model
    assert (model.encoder_layers, model.decoder_layers) == depths
    # Its training left out layers at times; what it computes has all of them.
    dropped = [key for key in changes if key.endswith("drop") and changes[key]]
    assert marian_settings.unimported(changes) == [
        f"note: our training has no {key}={changes[key]}" for key in dropped
    ]


@pytest.mark.parametrize(("changes", "message"), REFUSED_DEPTHS)
def test_what_our_layers_cannot_be_is_refused_by_name(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^config.json: {re.escape(message)}"):
        imported_model(**changes)


def test_the_tables_of_depths_have_every_such_key_of_transformers() -> None:
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: .[oracles]"
    )
    sizes = re.compile(r"layer(s|drop)$|heads$|ffn_dim$|hidden_size$")
    marian = transformers.MarianConfig
    keys = [*marian().to_dict(), *marian.attribute_map]
    tables = [*IMPORTED_DEPTHS, *REFUSED_DEPTHS]
    assert {key for key in keys if sizes.search(key)} == {
        key for changes, _ in tables for key in changes if sizes.search(key)
    }
    assert marian.attribute_map == marian_settings.ALIASES


@pytest.mark.parametrize("value", [["relu"], {}, None])
def test_an_odd_activation_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"config.json: activation_function .* got"):
        imported_model(activation_function=value)
