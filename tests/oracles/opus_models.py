"""Models in the layout of the OPUS models, built and trained by transformers."""

import importlib.util
import json
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from configs import own_text
from vaswani_jax.exchange import marian_import

# Their imports take seconds, and wait for the tests that use them.
for library in ("torch", "transformers"):
    if importlib.util.find_spec(library) is None:
        pytest.skip(
            f"{library} is not installed: pip install -e '.[oracles]'",
            allow_module_level=True,
        )

SYLLABLES = "ba be bi bo bu da de di do du".split()
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
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [model.id_to_piece(i) for i in range(model.get_piece_size())][3:]


def build(directory: pathlib.Path) -> Any:
    """Write an untrained model in the layout of the OPUS models, and return it."""
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
    network = untrained(len(names))
    network.save_pretrained(str(directory))
    return network


def build_separate(directory: pathlib.Path) -> Any:
    """Write an untrained model whose sides have vocabularies of their own."""
    lines = sentences(400, seed=1)
    sources = learn_subwords(lines, directory / "source.spm")
    targets = learn_subwords(
        [spelt_backwards(o) for o in lines], directory / "target.spm"
    )
    source_names = ["</s>", "<unk>", *sources, "<pad>"]
    target_names = ["</s>", "<unk>", *sorted(targets, reverse=True), "<pad>"]
    for name, names in (("vocab", source_names), ("target_vocab", target_names)):
        vocab = {subword: token for token, subword in enumerate(names)}
        (directory / f"{name}.json").write_text(json.dumps(vocab))
    tokenizer_config = {
        "source_lang": "en",
        "target_lang": "de",
        "separate_vocabs": True,
        "target_vocab_file": str(directory / "target_vocab.json"),
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    start = len(target_names) - 1
    network = untrained(
        len(source_names),
        share_encoder_decoder_embeddings=False,
        decoder_vocab_size=len(target_names),
        pad_token_id=min(start, len(source_names) - 1),
        decoder_start_token_id=start,
    )
    network.save_pretrained(str(directory))
    return network


def untrained(rows: int, **changes: Any) -> Any:
    """Return a model with random weights, its bias of the logits too."""
    import torch
    import transformers

    torch.manual_seed(3)
    sides = {
        f"{side}_{key}": value
        for side in ("encoder", "decoder")
        for key, value in (("attention_heads", 4), ("ffn_dim", 48))
    }
    values = {
        "vocab_size": rows,
        "d_model": 32,
        # More than decoder layers, as in fast students of the OPUS models.
        "encoder_layers": 3,
        "decoder_layers": 1,
        "activation_function": "swish",
        "scale_embedding": True,
        "dropout": 0.0,
        "pad_token_id": rows - 1,
        "decoder_start_token_id": rows - 1,
        "eos_token_id": 0,
        "forced_eos_token_id": None,
        "max_position_embeddings": 128,
        "init_std": 0.1,
        **sides,
        **changes,
    }
    network = transformers.MarianMTModel(transformers.MarianConfig(**values))
    generator = torch.Generator().manual_seed(4)
    network.final_logits_bias.normal_(std=0.3, generator=generator)
    return network


def train(network: Any, directory: pathlib.Path) -> None:
    """Train a model to spell words backwards, and write it."""
    import torch
    import transformers

    lines = sentences(400, seed=1)
    ignored = network.config.pad_token_id
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(directory))
    adam = torch.optim.Adam(network.parameters(), lr=3e-3)
    for start in range(0, 300 * 32, 32):
        sources = [lines[i % len(lines)] for i in range(start, start + 32)]
        batch = tokenizer(
            sources,
            text_target=[spelt_backwards(line) for line in sources],
            padding=True,
            return_tensors="pt",
        )
        labels = batch["labels"].masked_fill(batch["labels"] == ignored, -100)
        loss = network(**{**batch, "labels": labels}).loss
        loss.backward()
        adam.step()
        adam.zero_grad()
    network.save_pretrained(str(directory))


def load(
    directory: pathlib.Path, locales: Sequence[str] = ("", "")
) -> marian_import.ImportedModel:
    return marian_import.load(directory, own_text.get_config(), locales=locales)
