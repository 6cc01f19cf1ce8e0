"""A MarianMT model that transformers has trained translates here as it does there."""

import base64
import collections
import json
import pathlib
import shutil
import sys
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from configs import own_text
from tests import settings, workers
from tests.oracles import opus_models
from tests.programs import runs
from vaswani_jax.core import types
from vaswani_jax.exchange import (
    marian_export,
    marian_import,
    marian_settings,
    marian_weights,
)
from vaswani_jax.model import transformer

EXTRA = 50


@pytest.fixture(scope="session")
def opus(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A directory in the layout of the OPUS models."""

    def train(directory: pathlib.Path) -> None:
        directory.mkdir(exist_ok=True)
        opus_models.train(opus_models.build(directory), directory)

    return workers.make_once(tmp_path_factory, "marian/opus", train)


@pytest.fixture(scope="session")
def imported(
    opus: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """Return the workdir of the model imported from that directory."""

    def import_model(workdir: pathlib.Path) -> None:
        result = run_import(opus, workdir)
        assert result.returncode == 0, result.stderr.decode()

    return workers.copy_once(tmp_path_factory, "run/opus", import_model)


def run_import(directory: pathlib.Path, workdir: pathlib.Path) -> Any:
    program = [sys.executable, "-m", "vaswani_jax.import_marian"]
    return runs.run(*program, str(directory), f"--workdir={workdir}")


def translate_by_transformers(
    directory: pathlib.Path, lines: list[str], *, alpha: float = 0.0
) -> tuple[list[str], list[float]]:
    import torch
    import transformers

    network = transformers.MarianMTModel.from_pretrained(str(directory)).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(directory))
    # Lines of one length together: nothing is padded.
    indices_by_length = collections.defaultdict(list)
    for index, line in enumerate(lines):
        indices_by_length[len(tokenizer(line)["input_ids"])].append(index)
    texts, scores = [""] * len(lines), [0.0] * len(lines)
    for length, indices in indices_by_length.items():
        batch = [lines[index] for index in indices]
        with torch.no_grad():
            outputs = network.generate(
                **tokenizer(batch, return_tensors="pt"),
                num_beams=4,
                length_penalty=alpha,
                early_stopping="never",
                bad_words_ids=[[network.config.pad_token_id]],
                max_length=length + EXTRA + 1,
                output_scores=True,
                return_dict_in_generate=True,
            )
        for row, index in enumerate(indices):
            texts[index] = tokenizer.decode(
                outputs.sequences[row],
                skip_special_tokens=True,
                clean_up_tokenization_spaces=False,
            )
            scores[index] = float(outputs.sequences_scores[row])
    return texts, scores


def translate(imported: pathlib.Path, lines: list[str], *flags: str) -> list[Any]:
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
    hypotheses = translate(imported, lines, *flags)
    texts, scores = translate_by_transformers(opus, lines, alpha=alpha)
    assert len(set(texts)) > 40
    # We show an unknown subword, transformers hides it.
    shown = [best["text"].replace(" \u2047 ", "") for best in hypotheses]
    assert shown == texts
    np.testing.assert_allclose(
        [best["score"] for best in hypotheses], scores, rtol=1e-3, atol=1e-3
    )


def test_a_page_of_an_imported_model_has_the_attention_of_transformers(
    opus: pathlib.Path, imported: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    import torch
    import transformers

    lines = opus_models.sentences(3, seed=11)
    (tmp_path / "lines").write_text("\n".join(lines))
    result = runs.run(
        *(sys.executable, "-m", "vaswani_jax.page", f"--workdir={imported}"),
        *(f"--input={tmp_path / 'lines'}", f"--output={tmp_path / 'page.json'}"),
        devices=None,
    )
    assert result.returncode == 0, result.stderr.decode()
    page = json.loads((tmp_path / "page.json").read_text())
    assert [sentence["text"] for sentence in page["sentences"]] == lines
    network = transformers.MarianMTModel.from_pretrained(
        str(opus), attn_implementation="eager"
    ).eval()
    vocab = json.loads((opus / "vocab.json").read_text())
    fields = {"encoder": "encoder", "decoder": "decoder", "memory": "cross"}
    for sentence in page["sentences"]:
        [view] = sentence["views"]
        shown = view["attention"]
        source, output = (
            [vocab[subword] for subword in shown[side]]
            for side in ("source", "target_out")
        )
        start = network.config.decoder_start_token_id
        with torch.no_grad():
            expected = network(
                input_ids=torch.tensor([source]),
                decoder_input_ids=torch.tensor([[start, *output[:-1]]]),
                output_attentions=True,
            )
        for kind, field in fields.items():
            layers = getattr(expected, f"{field}_attentions")
            exact = np.stack([layer[0].numpy() for layer in layers])
            levels = np.frombuffer(base64.b64decode(shown[kind]), np.uint8)
            weights = levels.reshape(shown["shapes"][kind]) / page["levels"]
            np.testing.assert_allclose(
                weights, exact, rtol=0, atol=1 / 510 + 1e-5, err_msg=kind
            )


SEPARATE = {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 24}


@pytest.mark.parametrize("vocabularies", [{}, SEPARATE], ids=["shared", "separate"])
@pytest.mark.parametrize(("encoder", "decoder"), [(1, 1), (3, 1), (1, 2)])
def test_models_of_all_depths_come_and_go_with_their_logits(
    tmp_path: pathlib.Path, encoder: int, decoder: int, vocabularies: dict[str, Any]
) -> None:
    import torch

    rows, path = 20, tmp_path / "config.json"
    depths = {"encoder_layers": encoder, "decoder_layers": decoder}
    network = opus_models.untrained(rows, **depths, **vocabularies).eval()
    orders = {"embedding": range(rows)}
    sizes: types.VocabSize = rows
    if vocabularies:
        sizes = types.VocabSizes(rows, vocabularies["decoder_vocab_size"])
        orders = {"source_embedding": range(rows), "target_embedding": range(sizes[1])}
    marian_config = marian_settings.resolve_aliases(
        json.loads(network.config.to_json_string()), path=path
    )
    marian_settings.check_importable(marian_config, {}, path=path)
    values = marian_settings.import_model(marian_config)
    model = settings.small_settings(
        **{f"model.{key}": value for key, value in values.items()}
    ).model
    network.save_pretrained(str(tmp_path))
    tensors = marian_weights.read_tensors(tmp_path, is_shared=not vocabularies)
    params = marian_weights.import_params(
        tensors, model, orders=orders, directory=tmp_path
    )
    generator = np.random.default_rng(1)
    source, target_in = generator.integers(1, rows - 1, (2, 3, 7))
    with torch.no_grad():
        expected = network(
            input_ids=torch.tensor(source),
            decoder_input_ids=torch.tensor(target_in),
        ).logits.numpy()
    logits: Any = transformer.Transformer(model, sizes).apply(
        {"params": params},
        jnp.asarray(source),
        jnp.asarray(target_in),
        deterministic=True,
    )
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)
    exported = marian_export.model_config(model, vocab_size=sizes)
    assert exported.items() >= (depths | vocabularies).items()
    back = marian_weights.export_params(params, model)
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(back[name], tensor)


def test_separate_vocabularies_are_imported_with_their_ids(
    tmp_path: pathlib.Path,
) -> None:
    import torch
    import transformers

    network = opus_models.build_separate(tmp_path).eval()
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(tmp_path))
    lines = opus_models.sentences(8, seed=2)
    targets = [opus_models.spelt_backwards(line) for line in lines]
    model = opus_models.load(tmp_path)
    subwords = model.vocabulary
    assert model.settings.data.vocabulary_sharing == "separate"
    assert model.settings.data.planned_vocab_size == subwords.size
    vocabs = [
        json.loads((tmp_path / name).read_text())
        for name in ("vocab.json", "target_vocab.json")
    ]
    for line, target in zip(lines, targets, strict=True):
        source_ids = tokenizer(line)["input_ids"]
        labels = tokenizer(text_target=target)["input_ids"]
        [source], [output] = (
            subwords.encode([line]),
            subwords.encode([target], target=True),
        )
        source, output = ([*ids, types.EOS_ID] for ids in (source, output))
        assert [vocabs[0][subwords.source.subword(i)] for i in source] == source_ids
        assert [vocabs[1][subwords.target.subword(i)] for i in output] == labels
        start = network.config.decoder_start_token_id
        with torch.no_grad():
            expected = network(
                input_ids=torch.tensor([source_ids]),
                decoder_input_ids=torch.tensor([[start, *labels[:-1]]]),
            ).logits.numpy()
        logits: Any = transformer.Transformer(
            model.settings.model, subwords.size
        ).apply(
            {"params": model.params},
            jnp.asarray([source]),
            jnp.asarray([[types.BOS_ID, *output[:-1]]]),
            deterministic=True,
        )
        words = range(types.UNK_ID, subwords.target.size)
        order = [vocabs[1][subwords.target.subword(i)] for i in words]
        np.testing.assert_allclose(
            logits[..., types.UNK_ID :], expected[..., order], rtol=1e-3, atol=1e-4
        )
    formats_directory = tmp_path / "again"
    marian_export.save(
        formats_directory,
        params=model.params,
        settings=model.settings,
        vocabulary=subwords,
    )
    for side in ("source", "target"):
        shutil.copy(tmp_path / f"{side}.spm", formats_directory)
    back = opus_models.load(formats_directory)
    assert back.vocabulary.encode(lines) == subwords.encode(lines)
    assert back.vocabulary.encode(targets, target=True) == subwords.encode(
        targets, target=True
    )


def test_every_part_of_a_long_line_has_its_language(
    imported: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    line, arrays, words = " ".join(["ba be"] * 20), tmp_path / "a.npz", tmp_path / "w"
    flags = [f"--attention={arrays}", f"--alignments={words}"]
    limit = "--config.search.max_source_tokens=12"
    translate(imported, [f"{opus_models.CODE} {line}", "baXba be"], *flags, limit)
    attention = np.load(arrays)
    parts = [
        key for key in attention if key.startswith("1.") and key.endswith("source")
    ]
    assert len(parts) > 3
    assert all(attention[key][0] == opus_models.CODE for key in parts)
    first, second = (
        [tuple(map(int, pair.split("-"))) for pair in row.split()]
        for row in words.read_text().splitlines()
    )
    # The code is a word of the line, once; what is unknown starts none.
    assert {source for source, _ in first} <= set(range(41))
    assert max(source for source, _ in first) > 30
    assert {source for source, _ in second} <= {0, 1}


def test_generation_settings_are_taken_over_or_noted(
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
    model = opus_models.load(copy)
    search = model.settings.search
    assert (search.beam_size, search.length_penalty) == (6, 1.2)
    assert (search.min_tokens, search.max_tokens) == (5, 19)
    assert (search.no_repeat_ngram, search.length_penalty_form) == (3, "power")
    notes = " ".join(model.notes)
    assert "repetition_penalty=1.3" in notes and "bad_words_ids=[[7], [76]]" in notes
    assert not opus_models.load(opus).notes
    values = own_text.get_config()
    values.search.beam_size = 2
    model = marian_import.load(copy, values, overridden=["search.beam_size"])
    assert model.settings.search.beam_size == 2
    with pytest.raises(
        ValueError, match=r"--config\.model\.d_ff cannot be set, .* leave"
    ):
        marian_import.load(copy, values, overridden=["model.d_ff"])


def test_an_imported_vocabulary_is_kept(imported: pathlib.Path) -> None:
    common = [f"--config=configs/of_run.py:{imported}", f"--workdir={imported}"]
    program = [sys.executable, "-m", "vaswani_jax.evaluate"]
    assert "train --init_from" in runs.error_of(runs.run(*program, *common))
    file_names = sorted(path.name for path in (imported / "data").iterdir())
    program = [sys.executable, "-m", "vaswani_jax.prepare_data", "--rebuild_data"]
    task = ["--config.data.source=copy", "--config.data.vocab_size=57"]
    task += [f"--config.data.num_{split}=50" for split in ("train", "valid", "test")]
    task += ["--config.data.subword_model=bpe", "--config.data.byte_fallback=False"]
    assert "train --init_from" in runs.error_of(runs.run(*program, *common, *task))
    assert sorted(path.name for path in (imported / "data").iterdir()) == file_names


def test_an_imported_model_leaves_as_it_came(
    opus: pathlib.Path, imported: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    import transformers

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
    texts, scores = translate_by_transformers(opus, lines)
    texts_after, scores_after = translate_by_transformers(exports["marian"], lines)
    assert texts_after == texts
    np.testing.assert_allclose(scores_after, scores, rtol=1e-3, atol=1e-3)
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(opus))
    engine = pytest.importorskip("ctranslate2").Translator(str(exports["ctranslate2"]))
    translations = engine.translate_batch(
        [tokenizer.tokenize(line) for line in lines], beam_size=4, length_penalty=0.0
    )
    pieces = [translation.hypotheses[0] for translation in translations]
    assert [tokenizer.convert_tokens_to_string(each) for each in pieces] == texts
