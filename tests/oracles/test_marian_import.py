"""A MarianMT model that transformers has built and taught becomes one of ours."""

import json
import pathlib
import shutil
import sys
from typing import Any

import numpy as np
import pytest

from configs import own_text
from tests.oracles import opus_models
from tests.programs import runs
from vaswani_jax.exchange import marian_import

EXTRA = 50


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory in the layout of the OPUS models."""
    directory = tmp_path_factory.mktemp("marian")
    opus_models.teach(opus_models.build(directory), directory)
    return directory


@pytest.fixture(scope="module")
def imported(
    opus: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    workdir = tmp_path_factory.mktemp("run") / "opus"
    result = run_import(opus, workdir)
    assert result.returncode == 0, result.stderr.decode()
    return workdir


def run_import(directory: pathlib.Path, workdir: pathlib.Path) -> Any:
    program = [sys.executable, "-m", "vaswani_jax.import_marian"]
    return runs.run(*program, str(directory), f"--workdir={workdir}")


def theirs(
    directory: pathlib.Path, lines: list[str], *, alpha: float = 0.0
) -> tuple[list[str], list[float]]:
    network = opus_models.transformers.MarianMTModel.from_pretrained(
        str(directory)
    ).eval()
    tokenizer = opus_models.transformers.MarianTokenizer.from_pretrained(str(directory))
    texts, scores = [], []
    for line in lines:
        inputs = tokenizer([line], return_tensors="pt")
        with opus_models.torch.no_grad():
            found = network.generate(
                **inputs,
                num_beams=4,
                length_penalty=alpha,
                early_stopping="never",
                bad_words_ids=[[network.config.pad_token_id]],
                max_length=inputs["input_ids"].shape[1] + EXTRA + 1,
                output_scores=True,
                return_dict_in_generate=True,
            )
        texts.append(
            tokenizer.decode(
                found.sequences[0],
                skip_special_tokens=True,
                clean_up_tokenization_spaces=False,
            )
        )
        scores.append(float(found.sequences_scores[0]))
    return texts, scores


def ours(imported: pathlib.Path, lines: list[str], *flags: str) -> list[Any]:
    result = runs.run(
        *(sys.executable, "-m", "vaswani_jax.decode", "--format=json"),
        *(f"--config=configs/of_run.py:{imported}", *flags),
        stdin="\n".join(lines).encode(),
    )
    assert result.returncode == 0, result.stderr.decode()
    records = map(json.loads, result.stdout.decode().splitlines())
    return [record["hypotheses"][0] for record in records]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_an_imported_model_translates_and_scores_as_it_did(
    opus: pathlib.Path, imported: pathlib.Path, alpha: float
) -> None:
    lines = [
        *opus_models.sentences(60, seed=9),
        f"{opus_models.CODE} {opus_models.SYLLABLES[0]}",
        ">>deu<< ba",
    ]
    flags = [f"--config.search.length_penalty={alpha}", "--config.search.beam_size=4"]
    found = ours(imported, lines, *flags)
    texts, scores = theirs(opus, lines, alpha=alpha)
    assert len(set(texts)) > 40
    # An unknown subword is ours to show and theirs to hide.
    shown = [one["text"].replace(" \u2047 ", "") for one in found]
    assert shown == texts
    np.testing.assert_allclose(
        [one["score"] for one in found], scores, rtol=1e-3, atol=1e-3
    )


def test_every_part_of_a_long_line_has_its_language(
    imported: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    line, arrays, words = " ".join(["ba be"] * 20), tmp_path / "a.npz", tmp_path / "w"
    flags = [f"--attention={arrays}", f"--alignments={words}"]
    limit = "--config.search.max_source_tokens=12"
    ours(imported, [f"{opus_models.CODE} {line}", "baXba be"], *flags, limit)
    found = np.load(arrays)
    parts = [key for key in found if key.startswith("1.") and key.endswith("source")]
    assert len(parts) > 3
    assert all(found[key][0] == opus_models.CODE for key in parts)
    first, second = (
        [tuple(map(int, pair.split("-"))) for pair in row.split()]
        for row in words.read_text().splitlines()
    )
    # The code is a word of the line, once; what is unknown starts none.
    assert {source for source, _ in first} <= set(range(41))
    assert max(source for source, _ in first) > 30
    assert {source for source, _ in second} <= {0, 1}


def test_generation_settings_are_taken_over_or_told(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    path = copy / "generation_config.json"
    values = {
        **json.loads(path.read_text()),
        "num_beams": 6,
        "length_penalty": 1.2,
        "min_length": 5,
        "no_repeat_ngram_size": 3,
        "max_length": 20,
        "repetition_penalty": 1.3,
        "bad_words_ids": [[7], [76]],
    }
    path.write_text(json.dumps(values))
    found = opus_models.load(copy)
    search = found.settings.search
    assert (search.beam_size, search.length_penalty) == (6, 1.2)
    assert (search.min_tokens, search.max_tokens) == (5, 19)
    assert (search.no_repeat_ngram, search.length_penalty_form) == (3, "power")
    told = " ".join(found.notes)
    assert "repetition_penalty=1.3" in told and "bad_words_ids=[[7], [76]]" in told
    assert not opus_models.load(opus).notes
    given = own_text.get_config()
    given.search.beam_size = 2
    taken = marian_import.load(copy, given, given=["search.beam_size"])
    assert taken.settings.search.beam_size == 2
    with pytest.raises(ValueError, match=r"--config\.model\.d_ff: .* decides that"):
        marian_import.load(copy, given, given=["model.d_ff"])


def test_an_imported_vocabulary_is_kept(imported: pathlib.Path) -> None:
    common = [f"--config=configs/of_run.py:{imported}", f"--workdir={imported}"]
    program = [sys.executable, "-m", "vaswani_jax.evaluate"]
    assert "main --init_from" in runs.error_of(runs.run(*program, *common))
    before = sorted(path.name for path in (imported / "data").iterdir())
    program = [sys.executable, "-m", "vaswani_jax.prepare_data", "--rebuild_data"]
    task = ["--config.data.source=copy", "--config.data.vocab_size=57"]
    task += [f"--config.data.num_{split}=50" for split in ("train", "valid", "test")]
    task += ["--config.data.subword_model=bpe", "--config.data.byte_fallback=False"]
    assert "stays as it was" in runs.error_of(runs.run(*program, *common, *task))
    assert sorted(path.name for path in (imported / "data").iterdir()) == before


def test_an_imported_model_leaves_as_it_came(
    opus: pathlib.Path, imported: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    exports = {}
    for form in ("marian", "ctranslate2"):
        exports[form] = tmp_path / form
        result = runs.run(
            *(sys.executable, "-m", "vaswani_jax.export"),
            *(f"--config=configs/of_run.py:{imported}", f"--workdir={imported}"),
            *(f"--format={form}", f"--output={exports[form]}"),
        )
        assert result.returncode == 0, result.stderr.decode()
        assert "no validation set" in result.stderr.decode()
    lines = opus_models.sentences(20, seed=10)
    texts, scores = theirs(opus, lines)
    again, scores_again = theirs(exports["marian"], lines)
    assert again == texts
    np.testing.assert_allclose(scores_again, scores, rtol=1e-3, atol=1e-3)
    tokenizer = opus_models.transformers.MarianTokenizer.from_pretrained(str(opus))
    engine = pytest.importorskip("ctranslate2").Translator(str(exports["ctranslate2"]))
    found = engine.translate_batch(
        [tokenizer.tokenize(line) for line in lines], beam_size=4, length_penalty=0.0
    )
    pieces = [result.hypotheses[0] for result in found]
    assert [tokenizer.convert_tokens_to_string(each) for each in pieces] == texts
