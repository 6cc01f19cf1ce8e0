"""Make the vocabulary of a run: from files that settings name, else from its text."""

import itertools
import logging
import unicodedata
from collections.abc import Sequence

from vaswani_jax.core import config
from vaswani_jax.data import sources
from vaswani_jax.data.progress import show_progress
from vaswani_jax.data.subwords import VOCABULARY_KEYS, Subwords, spell_user_symbols
from vaswani_jax.data.training_text import TrainingText
from vaswani_jax.data.tree_symbols import TreeSymbols
from vaswani_jax.data.vocabulary import Vocabulary, clean_lines
from vaswani_jax.data.vocabulary_training import learn_subwords
from vaswani_jax.data.word_subwords import WordSubwords

logger = logging.getLogger(__name__)


def check_dropout(
    data: config.DataConfig,
    vocabulary: Vocabulary | None,
    *,
    configured_subwords: Sequence[Subwords | None],
) -> None:
    """Refuse subword dropout with a given vocabulary that has no merges.

    Args:
        data: Settings, which have the dropout.
        vocabulary: The vocabulary of --init_from; None without it.
        configured_subwords: Those of the files that the settings name, by side.

    Raises:
        ValueError: A vocabulary has no merges; the message names its flag or setting.
    """
    if not data.subword_dropout:
        return
    names = ["--init_from", *(f"config.data.{key}" for key in VOCABULARY_KEYS)]
    for name, subwords in zip(names, [vocabulary, *configured_subwords], strict=True):
        if subwords is not None and not subwords.accepts_dropout:
            raise ValueError(
                f"config.data.subword_dropout={data.subword_dropout} needs BPE: the "
                f"vocabulary of {name} is of another kind; set "
                "config.data.subword_dropout=0"
            )


def check_kind(vocabulary: Vocabulary, data: config.DataConfig) -> None:
    """Refuse a vocabulary of trees for text, text for trees, or other terminals."""
    vocabulary_kind = text_kind = "text"
    if isinstance(vocabulary.target, TreeSymbols):
        vocabulary_kind = (
            f"trees with data.tree_terminals={vocabulary.target.terminals}"
        )
    if data.source == "treebank":
        text_kind = f"trees with data.tree_terminals={data.tree_terminals}"
    if vocabulary_kind != text_kind:
        raise ValueError(
            f"the vocabulary of --init_from is for {vocabulary_kind}, but these "
            f"settings are for {text_kind}: change config.data, or leave --init_from "
            "out"
        )


def describe_origin(
    configured_subwords: Sequence[Subwords | None], data: config.DataConfig
) -> str:
    """Return where the vocabulary's subwords come from, as "given and learned bpe"."""
    is_shared = data.vocabulary_sharing == "shared"
    sides = configured_subwords[:1] if is_shared else configured_subwords
    origin = f"learned {data.subword_model}"
    return " and ".join(sorted({"given" if side else origin for side in sides}))


def make_vocabulary(
    data: config.DataConfig,
    configured_subwords: Sequence[Subwords | None],
    *,
    seed: int,
    training: TrainingText,
) -> Vocabulary:
    """Return the vocabulary of the files in the settings; learn what they lack."""
    if data.source == "treebank":
        subwords = configured_subwords[0] or _learn(data, 0, training=training)
        return Vocabulary(
            WordSubwords(subwords.model),
            TreeSymbols.learn(
                (tree for _, tree in sources.pairs(data, "train", seed=seed)),
                terminals=data.tree_terminals,
            ),
            is_shared=False,
        )
    if data.vocabulary_sharing == "shared":
        subwords = configured_subwords[0] or _learn(data, None, training=training)
        return Vocabulary.shared(subwords)
    source, target = (
        subwords or _learn(data, side, training=training)
        for side, subwords in enumerate(configured_subwords)
    )
    return Vocabulary(source, target, is_shared=False)


def _learn(
    data: config.DataConfig, side: int | None, *, training: TrainingText
) -> Subwords:
    """Learn subwords of one side, or of both, from pairs of all the training text.

    Leaves out pairs with an empty side, and pairs where a side to learn from has more
    characters than `max_length` subwords can have: training leaves them out, too.
    """
    size = min(sum(training.num_kept), max(1, data.sentencepiece_sample_size // 2))
    pairs = training.sample(size)
    logger.info(
        f"learning a {data.subword_model} vocabulary from "
        f"{2 * size if side is None else size:,} lines"
    )
    pairs = show_progress(pairs, "sampling", total=size)
    longest = (data.max_length - 1) * max(
        data.max_subword_length, *map(len, spell_user_symbols(data.symbols)), 1
    )

    def may_fit(line: str) -> bool:
        if len(line) <= longest:
            return True
        # SentencePiece reads many spaces as one, and some normalisations compose.
        return len(" ".join(unicodedata.normalize("NFKC", line).split())) <= longest

    sides = range(2) if side is None else [side]
    usable = (
        pair
        for pair in pairs
        if all(clean_lines(pair)) and all(may_fit(pair[number]) for number in sides)
    )
    if side is None:
        return learn_subwords(itertools.chain.from_iterable(usable), data)
    is_target = side == 1 and data.target_vocab_size > 0
    return learn_subwords(
        (pair[side] for pair in usable),
        data,
        key="target_vocab_size" if is_target else "vocab_size",
        vocab_size=data.target_vocab_size if is_target else data.vocab_size,
    )
