"""An export is complete: its subwords, and positions for the longest output."""

import json
import pathlib

import pytest
import sentencepiece

from tests import settings
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.exchange import formats
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator


@pytest.mark.parametrize("form", sorted(formats.PACKAGES))
def test_an_export_has_the_subwords_and_positions_for_the_longest_output(
    tmp_path: pathlib.Path, form: str
) -> None:
    for package in formats.PACKAGES[form]:
        pytest.importorskip(package, reason=f"{package} is not installed: .[export]")
    small = settings.small_settings(**{"model.max_positions": 4, "model.d_v": 4})
    vocabulary = settings.letters_vocabulary()
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=1)
    member = Member(small.model, Checkpoint(0, {"params": params}, {}))
    translator = Translator(small, vocabulary, members=[member])
    formats.save(tmp_path / form, translator, form=form)
    source, target = (
        (tmp_path / form / f"{side}.spm").read_bytes() for side in ("source", "target")
    )
    # The source is read as ours is: an engine gets what looks the same.
    assert target == vocabulary.target.model
    engine_reader = sentencepiece.SentencePieceProcessor(model_proto=source)
    for line in ("a\u00a0b\u200e ｃ", "a ½"):
        assert engine_reader.encode([line]) == vocabulary.encode([line])
    if form == "stablehlo":
        spellings = json.loads((tmp_path / form / "target.json").read_text("utf-8"))
        assert spellings == vocabulary.target.spellings
    if form == "marian":
        values = json.loads((tmp_path / form / "config.json").read_text())
        # max_source_tokens and max_extra_tokens.
        assert values["max_position_embeddings"] == 16 + 5


@pytest.mark.parametrize("form", sorted(formats.PACKAGES))
@pytest.mark.parametrize("key", ["config.data.source=treebank", "deterministic_attent"])
def test_models_of_trees_are_refused_by_their_setting(form: str, key: str) -> None:
    changes = {
        "data.source": "treebank",
        "data.text_directory": ".",
        "data.train_trees": "trees",
        "data.valid_trees": "",
        "data.vocabulary_sharing": "separate",
        "training.best_metric": "f1",
        "model.deterministic_attention": "attent" in key,
    }
    formats.check_model(settings.small_settings(), form)
    with pytest.raises(ValueError, match=f"--format={form} .*{key}"):
        formats.check_model(settings.small_settings(**changes), form)
