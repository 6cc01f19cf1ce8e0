"""Figures 1 and 2 are of the run of figures 3 to 5, or of the base model."""

from tests import settings
from tests.paper.workdirs import ROWS, leave, read
from vaswani_jax.inference.translator import Translator
from vaswani_jax.paper import model_figures
from vaswani_jax.paper.attention_figures import ShownRun


def test_the_model_is_that_of_the_attention(tmp_path):
    leave(tmp_path / "six", ROWS["base"])
    [run] = read(tmp_path)
    translator = Translator(
        settings.small_settings(**{"model.num_layers": 6}),
        settings.letters_vocabulary(),
        members=[],
    )
    model = model_figures.choose(ShownRun(run, translator), base=ROWS["base"])
    assert model.title == str(tmp_path / "six")
    assert model.settings == translator.config.model
    assert model.vocab_size == translator.vocabulary.size
    assert f"of {model.title}, the run of figures 3 to 5" in model.note


def test_without_a_run_it_is_the_base_model():
    model = model_figures.choose(None, base=ROWS["base"])
    assert model.title == "base" and model.settings == ROWS["base"].model
    assert model.vocab_size == 37000
    assert "of the base model: there is no run" in model.note
