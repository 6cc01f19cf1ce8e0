"""import_marian as a user runs it: a MarianMT directory becomes a run to fine-tune."""

import json
import pathlib
import sys

import numpy as np

import vaswani_jax
from tests import settings
from tests.programs import runs
from vaswani_jax.checkpoints import store
from vaswani_jax.exchange import formats
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator

PAIRS = {
    "ein hund": "a dog",
    "eine katze": "a cat",
    "die katze": "the cat",
}
# Every pair in each batch, and no dropout: the loss is known before the update.
TUNING = {
    "data.source_locale": "de",
    "data.target_locale": "en",
    "data.test_source": "",
    "data.test_target": "",
    "data.num_buckets": 1,
    "optimizer.warmup_steps": 1,
    "optimizer.learning_rate_scale": 0.5,
    "training.label_smoothing": 0.0,
    "training.num_steps": 20,
    "training.log_every_steps": 1,
    "training.evaluate_every_steps": 20,
    "training.checkpoint_every_steps": 20,
    "training.average_checkpoints": 1,
}


def export_model(directory: pathlib.Path) -> Translator:
    """Export a model with random parameters for MarianMT, and return it."""
    small = settings.small_settings(
        **{
            **{"model.d_v": 4, "model.dropout_rate": 0.0, "data.vocab_size": 60},
            **{"model.num_encoder_layers": 2, "model.num_decoder_layers": 1},
            "model.layer_norm_epsilon": 1e-5,  # as MarianMT's
            "search.max_source_tokens": 16,
        }
    )
    text = [*PAIRS, *PAIRS.values()]
    subwords = settings.learn_vocabulary(text * 10, small.data)
    params = settings.random_params(small.model, vocab_size=subwords.size, seed=3)
    member = Member(small.model, store.Checkpoint(0, {"params": params}, {}))
    translator = Translator(small, subwords, members=[member])
    formats.save(directory, translator, form="marian")
    return translator


def loss_on_pairs(translator: Translator) -> float:
    """Return the loss per target token, end marks included."""
    scores = translator.score(list(PAIRS), list(PAIRS.values()))
    tokens = sum(len(score.tokens) for score in scores)
    return -sum(score.log_prob for score in scores) / tokens


def run_command(*words: str) -> str:
    """Run `vaswani` with some words; return its messages and its output."""
    completed = runs.run(sys.executable, "-m", "vaswani_jax", *words, devices=1)
    assert completed.returncode == 0, completed.stderr.decode()
    return (completed.stderr + completed.stdout).decode()


def test_an_exported_model_is_imported_and_fine_tuned(tmp_path: pathlib.Path) -> None:
    exported = export_model(tmp_path / "marian")
    opus, tuned = tmp_path / "opus", tmp_path / "tuned"
    run_command("import-marian", str(tmp_path / "marian"), str(opus))
    for split in ("train", "valid"):
        for side, lines in (("source", PAIRS.keys()), ("target", PAIRS.values())):
            text = "".join(f"{line}\n" for line in lines)
            (tmp_path / f"{split}.{side}").write_text(text)
    # Such a run has no text of its own.
    files = f"{tmp_path}/valid.source,{tmp_path}/valid.target"
    shown = run_command("evaluate", str(opus), f"--split=pairs={files}")
    assert "pairs: 3 lines in, 3 lines out" in shown
    assert list((opus / "evaluations").glob("pairs-*.json"))
    run_command(
        *("train", f"--init_from={opus}", f"--workdir={tuned}"),
        f"--config.data.text_directory={tmp_path}",
        *(f"--config.{key}={value}" for key, value in TUNING.items()),
    )
    records = map(json.loads, (tuned / "metrics.jsonl").read_text().splitlines())
    losses = [record["train/loss"] for record in records if "train/loss" in record]
    # The first update starts from the parameters that were exported.
    np.testing.assert_allclose(losses[0], loss_on_pairs(exported), rtol=1e-4)
    assert len(losses) == 20 and losses[-1] < losses[0] / 2
    translator = vaswani_jax.load(tuned)
    assert translator.vocabulary.size == exported.vocabulary.size


def test_a_workdir_that_is_not_empty_is_refused(tmp_path: pathlib.Path) -> None:
    workdir = tmp_path / "full"
    workdir.mkdir()
    (workdir / "file").touch()
    words = ["-m", "vaswani_jax", "import-marian", str(tmp_path), str(workdir)]
    error = runs.error_of(runs.run(sys.executable, *words, devices=1))
    assert error == (f"error: --workdir={workdir} is not empty: name another directory")
    assert [path.name for path in workdir.iterdir()] == ["file"]
