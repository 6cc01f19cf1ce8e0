"""A treebank of a few words, generated, that a toy learns in a minute."""

import pathlib
import random

WORDS = {
    "DT": ["the", "a", "every"],
    "NN": ["man", "house", "river", "song"],
    "JJ": ["old", "green"],
    "VBZ": ["sees", "builds"],
    ".": ["."],
}
# A directory, settings of a toy, and all else as configs/parsing_gum.py:options has it.
SETTINGS = {
    "model.num_layers": 1,
    "model.d_model": 32,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.d_k": 16,
    "model.d_v": 16,
    "model.dropout_rate": 0.0,
    "data.vocab_size": 300,
    "data.max_length": 32,
    "data.num_buckets": 1,
    "data.source_tokens_per_batch": 1024,
    "data.target_tokens_per_batch": 1024,
    "data.subword_dropout": 0.0,
    "data.subword_samples": 1,
    "optimizer.warmup_steps": 40,
    "training.label_smoothing": 0.0,
    "training.num_steps": 80,
    "training.evaluate_every_steps": 40,
    "training.checkpoint_every_steps": 20,
    "training.average_checkpoints": 1,
    "search.beam_size": 2,
    "search.max_extra_tokens": 16,  # the longest tree has 16 symbols in all
}


def write_treebank(directory: pathlib.Path) -> None:
    """Write the trees of 150 sentences for training and of 40 others to validate."""
    generator = random.Random(1)
    trees = list(dict.fromkeys(_sentence(generator) for _ in range(400)))
    for name, part in (("train", trees[:150]), ("dev", trees[150:190])):
        path = directory / f"{name}.trees.txt"
        path.write_text("\n".join(part) + "\n", encoding="utf-8")


def _sentence(generator: random.Random) -> str:
    def leaf(tag: str) -> str:
        return f"({tag} {generator.choice(WORDS[tag])})"

    def noun_phrase() -> str:
        adjective = f" {leaf('JJ')}" if generator.random() < 0.5 else ""
        return f"(NP {leaf('DT')}{adjective} {leaf('NN')})"

    seen = f" {noun_phrase()}" if generator.random() < 0.7 else ""
    return f"(ROOT (S {noun_phrase()} (VP {leaf('VBZ')}{seen}) {leaf('.')}))"
