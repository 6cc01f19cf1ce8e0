"""A MarianMT model that our model cannot be is refused, with its file and its rule."""

import json
import pathlib
import shutil
from typing import Any

import jax
import numpy as np
import pytest
import safetensors.numpy

from configs import own_text
from tests.oracles import opus_models
from vaswani_jax.exchange import marian_import

CONFIG_REFUSALS = {
    "max_position_embeddings": ("many", "max_position_embeddings must be a positive"),
    "dropout": (None, "dropout must be a number, got None"),
    "scale_embedding": (False, "scale_embedding must be True, got False"),
    "decoder_layers": (0, "decoder_layers must be a positive number, got 0"),
    "activation_function": ("gelu", "one of relu, swish, silu, got 'gelu'"),
    "normalize_before": (True, "normalize_before must be False"),
    "model_type": ("bart", "model_type must be marian, got 'bart'"),
    "d_model": ("big", "d_model must be a positive number"),
    "encoder_attention_heads": (5, "must be the same number, got 5 and 4"),
    "encoder_ffn_dim": (None, "must be the same number, got None"),
    "pad_token_id": (1000, "must be numbers below"),
}


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a directory in the layout of the OPUS models."""
    directory = tmp_path_factory.mktemp("marian")
    opus_models.build(directory)
    return directory


@pytest.mark.parametrize("key", CONFIG_REFUSALS)
def test_a_model_of_another_kind_is_refused(
    opus: pathlib.Path, tmp_path: pathlib.Path, key: str
) -> None:
    value, message = CONFIG_REFUSALS[key]
    copy = shutil.copytree(opus, tmp_path / "copy")
    values = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**values, key: value}))
    with pytest.raises(ValueError, match=message) as caught:
        opus_models.load(copy)
    assert "config.json" in str(caught.value)


@pytest.mark.parametrize(
    "name", ["config.json", "vocab.json", "source.spm", "target.spm"]
)
def test_a_missing_or_damaged_file_is_named(
    opus: pathlib.Path, tmp_path: pathlib.Path, name: str
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    (copy / name).write_bytes((copy / name).read_bytes()[:-5])
    with pytest.raises(ValueError, match=name):
        opus_models.load(copy)
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        opus_models.load(copy)


def test_weights_must_fit_and_all_be_used(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    path = copy / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    bias = "final_logits_bias"
    name = "model.encoder.layers.1.fc1.weight"

    def error(changed: dict[str, Any]) -> str:
        safetensors.numpy.save_file(changed, path)
        with pytest.raises(ValueError) as caught:
            opus_models.load(copy)
        return str(caught.value)

    without = {key: value for key, value in tensors.items() if key != name}
    assert f"have no {name}" in error(without)
    assert "this model lacks: extra" in error({**tensors, "extra": np.ones(2)})
    short = {bias: tensors[bias][:, :-1]}
    assert f"{bias} has" in error({**tensors, **short})
    broken = {name: np.full_like(tensors[name], np.nan)}
    assert f"{name} has values that are not finite" in error({**tensors, **broken})
    assert f"{name} does not fit" in error({**tensors, name: tensors[name][:-1]})
    table = tensors["model.shared.weight"]
    untied = {"lm_head.weight": table + 1}
    assert "another lm_head.weight" in error({**tensors, **untied})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        opus_models.load(copy)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="neither"):
        opus_models.load(copy)


def test_pickled_weights_are_read_and_never_executed(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    import torch

    copy = shutil.copytree(opus, tmp_path / "copy")
    tensors = safetensors.numpy.load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    path, trace = copy / "pytorch_model.bin", tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> Any:
            return pathlib.Path.touch, (trace,)

    torch.save({name: torch.tensor(value) for name, value in tensors.items()}, path)
    jax.tree.map(
        np.testing.assert_array_equal,
        opus_models.load(copy).params,
        opus_models.load(opus).params,
    )
    torch.save({"weights": Evil()}, path)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin is damaged"):
        opus_models.load(copy)
    assert not trace.exists()


def test_the_languages_must_be_known(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    (copy / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match="give --source_locale"):
        opus_models.load(copy)
    data = opus_models.load(copy, ["fi", "et"]).settings.data
    assert (data.source_locale, data.target_locale) == ("fi", "et")
    names = {"source_lang": "en", "target_lang": "ROMANCE"}
    (copy / "tokenizer_config.json").write_text(json.dumps(names))
    with pytest.raises(ValueError, match=r"'ROMANCE' is no code.* --target_locale"):
        opus_models.load(copy)
    assert opus_models.load(copy, ["", "fr"]).settings.data.target_locale == "fr"
    with pytest.raises(ValueError, match=r"source_locale must begin with.*'german'"):
        opus_models.load(copy, ["german", "fr"])


def test_settings_of_the_user_win(opus: pathlib.Path) -> None:
    values = own_text.get_config()
    values.data.update(source_locale="fi", target_locale="et", max_length=100)
    keys = ("source_locale", "target_locale", "max_length")
    model = marian_import.load(opus, values, overridden=[f"data.{key}" for key in keys])
    assert [getattr(model.settings.data, key) for key in keys] == ["fi", "et", 100]
    own = opus_models.load(opus).settings.data
    assert [getattr(own, key) for key in keys] == ["en", "de", 512]


def test_config_json_names_the_search_only_without_the_other_file(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    values = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**values, "num_beams": 6}))
    generation = copy / "generation_config.json"
    generation.write_text('{"length_penalty": 0.5}')
    search = opus_models.load(copy).settings.search
    assert (search.beam_size, search.length_penalty) == (1, 0.5)
    generation.unlink()
    search = opus_models.load(copy).settings.search
    assert (search.beam_size, search.length_penalty) == (6, 1.0)


def test_separate_vocabularies_need_no_configuration_of_the_tokenizer(
    tmp_path: pathlib.Path,
) -> None:
    opus_models.build_separate(tmp_path)
    fingerprint = opus_models.load(tmp_path).vocabulary.fingerprint
    (tmp_path / "tokenizer_config.json").unlink()
    model = opus_models.load(tmp_path, ["en", "de"])
    assert model.vocabulary.fingerprint == fingerprint


def test_an_error_without_a_message_is_named(
    opus: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")

    def fail(path: object) -> None:
        raise EOFError

    monkeypatch.setattr(safetensors.numpy, "load_file", fail)
    with pytest.raises(ValueError, match=r"safetensors is damaged: EOFError\(\)"):
        opus_models.load(copy)


def test_an_id_has_one_spelling(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "vocab.json"
    path.write_text('{"<unk>": 0, "a": 1, "b": 1}')
    with pytest.raises(ValueError, match=r"one spelling, got 'a' and 'b' of 1"):
        marian_import.read_spellings(tmp_path, rows=3)
    path.write_text('{"<unk>": 0, "a": [1]}')
    with pytest.raises(ValueError, match=r"from 0 to 2, .* got \[1\] of 'a'"):
        marian_import.read_spellings(tmp_path, rows=3)
    path.write_text('{"<unk>": 0, "a": 2}')
    assert marian_import.read_spellings(tmp_path, rows=3) == [
        "<unk>",
        "<unused_1>",
        "a",
    ]
