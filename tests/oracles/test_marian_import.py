"""A MarianMT model that transformers has built and taught becomes one of ours."""

import json
import pathlib
import shutil
import sys
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import pytest

from configs import own_text
from tests.programs import runs
from vaswani_jax.exchange import marian_import

torch = pytest.importorskip(
    "torch", reason="torch is not installed: pip install -e '.[oracles]'"
)
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed: .[oracles]"
)
safetensors = pytest.importorskip("safetensors.numpy")

SYLLABLES = "ba be bi bo bu da de di do du".split()
EXTRA = 50
CODE = ">>fra<<"


def sentences(count: int, *, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)

    def word() -> str:
        return "".join(generator.choice(SYLLABLES, generator.integers(1, 3)))

    return [
        " ".join(word() for _ in range(generator.integers(1, 7))) for _ in range(count)
    ]


def spelt_backwards(line: str) -> str:
    return " ".join(word[::-1].upper() for word in line.split())


def learn_subwords(lines: list[str], path: pathlib.Path) -> list[str]:
    import sentencepiece

    with open(path, "wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=file,
            vocab_size=40,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    found = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [found.id_to_piece(i) for i in range(found.get_piece_size())][3:]


@pytest.fixture(scope="module")
def opus(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory in the layout of the OPUS models."""
    directory = tmp_path_factory.mktemp("marian")
    lines = sentences(400, seed=1)
    sources = learn_subwords(lines, directory / "source.spm")
    targets = learn_subwords(
        [spelt_backwards(o) for o in lines], directory / "target.spm"
    )
    names = ["</s>", "<unk>", CODE, *sorted({*sources, *targets}), "<pad>"]
    vocab = {name: token for token, name in enumerate(names)}
    (directory / "vocab.json").write_text(json.dumps(vocab))
    tokenizer_config = {"source_lang": "en", "target_lang": "de"}
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    network = taught(directory, lines, len(names))
    network.save_pretrained(str(directory))
    return directory


def taught(directory: pathlib.Path, lines: list[str], rows: int) -> Any:
    torch.manual_seed(3)
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 48))
    }
    settings = transformers.MarianConfig(
        vocab_size=rows,
        d_model=32,
        activation_function="swish",
        scale_embedding=True,
        dropout=0.0,
        pad_token_id=rows - 1,
        decoder_start_token_id=rows - 1,
        eos_token_id=0,
        forced_eos_token_id=None,
        max_position_embeddings=128,
        init_std=0.1,
        **sides,
    )
    network = transformers.MarianMTModel(settings)
    generator = torch.Generator().manual_seed(4)
    network.final_logits_bias.normal_(std=0.3, generator=generator)
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(directory))
    adam = torch.optim.Adam(network.parameters(), lr=3e-3)
    for start in range(0, 300 * 32, 32):
        chosen = [lines[i % len(lines)] for i in range(start, start + 32)]
        batch = tokenizer(
            chosen,
            text_target=[spelt_backwards(line) for line in chosen],
            padding=True,
            return_tensors="pt",
        )
        labels = batch["labels"].masked_fill(batch["labels"] == rows - 1, -100)
        loss = network(**{**batch, "labels": labels}).loss
        loss.backward()
        adam.step()
        adam.zero_grad()
    return network.eval()


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
    network = transformers.MarianMTModel.from_pretrained(str(directory)).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(directory))
    texts, scores = [], []
    for line in lines:
        inputs = tokenizer([line], return_tensors="pt")
        with torch.no_grad():
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
    lines = [*sentences(60, seed=9), f"{CODE} {SYLLABLES[0]}", ">>deu<< ba"]
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
    ours(imported, [f"{CODE} {line}", "baXba be"], *flags, limit)
    found = np.load(arrays)
    parts = [key for key in found if key.startswith("1.") and key.endswith("source")]
    assert len(parts) > 3
    assert all(found[key][0] == CODE for key in parts)
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
    found = load(copy)
    search = found.settings.search
    assert (search.beam_size, search.length_penalty) == (6, 1.2)
    assert (search.min_tokens, search.max_tokens) == (5, 19)
    assert (search.no_repeat_ngram, search.length_penalty_form) == (3, "power")
    told = " ".join(found.notes)
    assert "repetition_penalty=1.3" in told and "bad_words_ids=[[7], [76]]" in told
    assert not load(opus).notes
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
    lines = sentences(20, seed=10)
    texts, scores = theirs(opus, lines)
    again, scores_again = theirs(exports["marian"], lines)
    assert again == texts
    np.testing.assert_allclose(scores_again, scores, rtol=1e-3, atol=1e-3)
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(opus))
    engine = pytest.importorskip("ctranslate2").Translator(str(exports["ctranslate2"]))
    found = engine.translate_batch(
        [tokenizer.tokenize(line) for line in lines], beam_size=4, length_penalty=0.0
    )
    pieces = [result.hypotheses[0] for result in found]
    assert [tokenizer.convert_tokens_to_string(each) for each in pieces] == texts


CONFIG_REFUSALS = {
    "max_position_embeddings": ("many", "max_position_embeddings must be a positive"),
    "dropout": (None, "dropout must be a number, got None"),
    "scale_embedding": (False, "scale_embedding must be True, got False"),
    "decoder_layers": (1, "must be the same number, got 2 and 1"),
    "activation_function": ("gelu", "one of relu, swish, silu, got 'gelu'"),
    "normalize_before": (True, "normalize_before must be False"),
    "model_type": ("bart", "model_type must be marian, got 'bart'"),
    "d_model": ("big", "d_model must be a positive number"),
    "encoder_attention_heads": (5, "must be the same number, got 5 and 4"),
    "encoder_ffn_dim": (None, "must be the same number, got None"),
    "pad_token_id": (1000, "must be numbers below"),
}


@pytest.mark.parametrize("key", CONFIG_REFUSALS)
def test_a_model_that_is_none_of_ours_is_refused(
    opus: pathlib.Path, tmp_path: pathlib.Path, key: str
) -> None:
    value, said = CONFIG_REFUSALS[key]
    copy = shutil.copytree(opus, tmp_path / "copy")
    values = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**values, key: value}))
    with pytest.raises(ValueError, match=said) as caught:
        load(copy)
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
        load(copy)
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load(copy)


def test_weights_must_fit_and_all_be_used(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    path = copy / "model.safetensors"
    tensors = safetensors.load_file(path)
    bias = "final_logits_bias"
    name = "model.encoder.layers.1.fc1.weight"

    def error(changed: dict[str, Any]) -> str:
        safetensors.save_file(changed, path)
        with pytest.raises(ValueError) as caught:
            load(copy)
        return str(caught.value)

    without = {key: value for key, value in tensors.items() if key != name}
    assert f"have no {name}" in error(without)
    assert "model has not: extra" in error({**tensors, "extra": np.ones(2)})
    short = {bias: tensors[bias][:, :-1]}
    assert f"{bias} has" in error({**tensors, **short})
    broken = {name: np.full_like(tensors[name], np.nan)}
    assert f"{name} has values that are not finite" in error({**tensors, **broken})
    assert f"{name} does not fit" in error({**tensors, name: tensors[name][:-1]})
    table = tensors["model.shared.weight"]
    other = {"lm_head.weight": table + 1}
    assert "another lm_head.weight" in error({**tensors, **other})
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"model\.safetensors is damaged"):
        load(copy)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="neither"):
        load(copy)


def test_pickled_weights_are_read_and_never_executed(
    opus: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    tensors = safetensors.load_file(copy / "model.safetensors")
    (copy / "model.safetensors").unlink()
    path, trace = copy / "pytorch_model.bin", tmp_path / "executed"

    class Evil:
        def __reduce__(self) -> Any:
            return pathlib.Path.touch, (trace,)

    torch.save({name: torch.tensor(value) for name, value in tensors.items()}, path)
    jax.tree.map(np.testing.assert_array_equal, load(copy).params, load(opus).params)
    torch.save({"weights": Evil()}, path)
    with pytest.raises(ValueError, match=r"pytorch_model\.bin is damaged"):
        load(copy)
    assert not trace.exists()


def test_the_languages_must_be_known(
    opus: pathlib.Path, tmp_path: pathlib.Path, imported: pathlib.Path
) -> None:
    copy = shutil.copytree(opus, tmp_path / "copy")
    (copy / "tokenizer_config.json").unlink()
    with pytest.raises(ValueError, match="give --source_locale"):
        load(copy)
    data = load(copy, ["fi", "et"]).settings.data
    assert (data.source_locale, data.target_locale) == ("fi", "et")
    names = {"source_lang": "en", "target_lang": "ROMANCE"}
    (copy / "tokenizer_config.json").write_text(json.dumps(names))
    with pytest.raises(ValueError, match=r"'ROMANCE' is no code.* --target_locale"):
        load(copy)
    assert load(copy, ["", "fr"]).settings.data.target_locale == "fr"
    assert "is not empty" in runs.error_of(run_import(opus, imported))


def load(
    directory: pathlib.Path, languages: Sequence[str] = ("", "")
) -> marian_import.Imported:
    return marian_import.load(directory, own_text.get_config(), languages)
