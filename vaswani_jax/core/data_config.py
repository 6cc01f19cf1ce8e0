"""Declare the settings of text, vocabulary and batches, section 5.1.

`core.config` has the other sections, and all of them together.
"""

import dataclasses
import functools
from typing import Any

from vaswani_jax.core import types
from vaswani_jax.core.corpora import (
    Corpus,
    corpora_text,
    describe_corpora_change,
    may_replace_corpora,
    parse_corpora,
    prepared_part,
)
from vaswani_jax.core.corpora_stages import (
    Stage,
    may_replace_stages,
    parse_stages,
    stages_text,
)
from vaswani_jax.core.settings import setting

# Where text and data lie says nothing of what they are.
path_setting = functools.partial(setting, is_path=True, changeable=True)


def clean_setting(meaning: str, off: bool | int | float, **properties: Any) -> Any:
    """Declare a rule that leaves out training pairs, with the value that is off."""
    return setting(meaning, legacy=off, affects="data", **properties)


# Values of data.source whose text is generated.
GENERATED = ("cldr", "copy", "reverse")
# About as many as the Penn Treebank's: 26 labels, 46 tags.
NUM_LABELS = 26
NUM_SYMBOLS = types.FIRST_LABEL_ID + 2 * NUM_LABELS + 46


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Text, vocabulary and batches, section 5.1."""

    source: str = setting(
        "Where the text comes from: files, a generated corpus, or a dataset.",
        choices=("text", "treebank", *GENERATED, "tfds:DATASET/PAIR"),
        affects="data",
    )
    source_locale: str = setting(
        "Language of the source, as a locale: en, pt_BR.",
        not_empty=True,
        example="en",
        affects="data",
    )
    target_locale: str = setting(
        "Language of the target; several (de,fr) if source lines have tags (<2de>).",
        not_empty=True,
        example="de",
        affects="data",
    )
    tfds_directory: str = path_setting(
        "Directory of tensorflow-datasets; empty for its default.",
        legacy="",
        incidental=True,
    )
    text_directory: str = path_setting(
        "Directory of the text files or trees below.",
        not_empty=True,
        for_source=("text", "treebank"),
        incidental=True,
    )
    train_source: str = path_setting(
        "Training text, source side: a file, a glob, or FILES#COLUMN as news.tsv#1.",
        not_empty=True,
        for_source=("text",),
    )
    train_target: str = path_setting(
        "Training text, target side: a file, a glob, or FILES#COLUMN as news.tsv#2.",
        not_empty=True,
        for_source=("text",),
    )
    corpora: str = setting(
        "TOML file of [[corpora]] to mix, or a list; empty: data.train_source alone.",
        legacy="",
        affects="data",
        canonical=corpora_text,
        prepared_part=prepared_part,
        may_replace=may_replace_corpora,
        describe_change=describe_corpora_change,
    )
    corpora_temperature: float = setting(
        "T: corpora without weights have shares size^(1/T); 1 for their sizes.",
        at_least=0.01,
        legacy=1.0,
    )
    epoch_pairs: int = setting(
        "Pairs of an epoch; 0 for all pairs of the corpora with a weight above 0.",
        at_least=0,
        legacy=0,
    )
    stages: str = setting(
        "Weights of corpora from a batch on, such as 0: crawl=4 news=1; 20000: news=1.",
        legacy="",
        canonical=stages_text,
        may_replace=may_replace_stages,
    )
    valid_source: str = path_setting(
        "Validation text, source side, likewise; empty for no validation set.",
    )
    valid_target: str = path_setting(
        "Validation text, target side, likewise; empty for no validation set.",
    )
    test_source: str = path_setting(
        "Test text, source side, likewise; empty for no test set."
    )
    test_target: str = path_setting(
        "Test text, target side, likewise; empty for no test set."
    )
    train_trees: str = setting(
        "Training trees: files, directories, globs, sections as 02-21, lists as @ids.",
        not_empty=True,
        for_source=("treebank",),
        changeable=True,
        legacy="",
    )
    valid_trees: str = setting(
        "Validation trees, likewise; empty for no validation set.",
        changeable=True,
        legacy="",
    )
    test_trees: str = setting(
        "Test trees, likewise; empty for no test set.", changeable=True, legacy=""
    )
    silver_trees: str = setting(
        "Extra trees that parsers made (semi-supervised, section 6.3); empty for none.",
        changeable=True,
        legacy="",
    )
    gold_repeats: int = setting(
        "Copies of each tree of data.train_trees in an epoch.",
        at_least=1,
        legacy=1,
        affects="data",
    )
    tree_terminals: str = setting(
        "Symbol of a word in the target: its tag, or XX.",
        choices=("tag", "word"),
        legacy="tag",
        affects="data",
    )
    num_train: int = setting(
        "Training pairs to generate.",
        at_least=1,
        for_source=GENERATED,
        affects="data",
    )
    num_valid: int = setting(
        "Validation pairs to generate.",
        at_least=1,
        for_source=GENERATED,
        changeable=True,
        affects="data",
    )
    num_test: int = setting(
        "Test pairs to generate.",
        at_least=1,
        for_source=GENERATED,
        changeable=True,
        affects="data",
    )
    directory: str = path_setting(
        "Directory of the prepared data; empty for WORKDIR/data.",
        incidental=True,
    )
    vocabulary: str = path_setting(
        "File of a SentencePiece model to use; empty to learn one from the text.",
        legacy="",
        imported=True,
    )
    target_vocabulary: str = path_setting(
        "SentencePiece model of the target, if vocabularies are separate.",
        legacy="",
        imported=True,
    )
    vocabulary_sharing: str = setting(
        "One vocabulary and embedding for both sides, or one for each side.",
        choices=("shared", "separate"),
        legacy="shared",
        affects="data",
        imported=True,
    )
    user_symbols: str = setting(
        "Tags and placeholders to keep whole, separated by commas.",
        legacy="",
        affects="data",
    )
    subword_model: str = setting(
        "SentencePiece model of the vocabulary.",
        choices=("bpe", "unigram"),
        affects="data",
        imported=True,
    )
    vocab_size: int = setting(
        "Subwords in a learned vocabulary, special ones included.",
        at_least=5,  # the four special ones and a subword
        affects="data",
        imported=True,
    )
    target_vocab_size: int = setting(
        "Subwords of the target's vocabulary, if separate; 0 for data.vocab_size.",
        values="0, or at least 5",
        at_least=0,
        legacy=0,
        affects="data",
        imported=True,
    )
    character_coverage: float = setting(
        "Share of characters with subwords; 0 for 0.9999, or 1 without byte_fallback.",
        values="0, or from 0.98 to 1",
        at_least=0,
        at_most=1,
        legacy=0.0,
        affects="data",
    )
    split_digits: bool = setting(
        "Make each digit a subword of its own.", legacy=False, affects="data"
    )
    max_subword_length: int = setting(
        "Maximum characters of a learned subword.",
        at_least=1,
        at_most=512,
        legacy=16,
        affects="data",
    )
    sentencepiece_sample_size: int = setting(
        "Lines the vocabulary is learned from, spread over the training text.",
        at_least=1,
        affects="data",
    )
    byte_fallback: bool = setting(
        "Encode unknown characters as bytes, not as one unknown subword.",
        affects="data",
    )
    normalization: str = setting(
        "SentencePiece's normalisation of Unicode.",
        choices=("identity", "nfkc", "nfkc_cf", "nmt_nfkc", "nmt_nfkc_cf"),
        affects="data",
    )
    subword_dropout: float = setting(
        "Share of BPE merges skipped in training text (BPE-dropout); 0 in the paper.",
        at_least=0,
        below=1,
        legacy=0.0,
        affects="data",
    )
    subword_samples: int = setting(
        "Segmentations of each training pair, if subword_dropout samples them.",
        at_least=1,
        legacy=1,
        affects="data",
    )
    max_length: int = setting(
        "Maximum tokens of a training sentence, its end mark included.",
        at_least=2,
        affects="data",
    )
    clean_empty: bool = clean_setting("Leave out pairs with an empty side.", False)
    clean_control_characters: bool = clean_setting(
        "Leave out pairs with control or private-use characters, except tabs.", False
    )
    clean_encodings: bool = clean_setting(
        "Leave out pairs with U+FFFD or wrongly decoded characters, such as fÃ¼r.",
        False,
    )
    clean_max_characters: int = clean_setting(
        "Leave out pairs with a side of more characters; 0 for no limit.", 0, at_least=0
    )
    clean_equal_sides: bool = clean_setting(
        "Leave out pairs whose sides are equal except for case and spaces.", False
    )
    clean_max_ratio: float = clean_setting(
        "Leave out pairs of a larger ratio of characters (10 added to each); 0: off.",
        0.0,
        values="0, or at least 1",
        at_least=0,
    )
    clean_min_letters: float = clean_setting(
        "Leave out pairs with a side of a smaller share of letters; 0: off.",
        0.0,
        at_least=0,
        at_most=1,
    )
    clean_min_script: float = clean_setting(
        "Leave out pairs with a smaller share of letters in a locale's script; 0: off.",
        0.0,
        at_least=0,
        at_most=1,
    )
    clean_language_odds: float = clean_setting(
        "Leave out pairs at larger odds for another language (extra langid); 0: off.",
        0.0,
        values="0, or at least 1",
        at_least=0,
    )
    clean_duplicates: bool = clean_setting(
        "Leave out duplicates: pairs that repeat an earlier pair.", False
    )
    source_tokens_per_batch: int = setting(
        "Source tokens of the global batch, padding included.",
        values="at least data.max_length, or data.packed_length if batches are packed",
    )
    target_tokens_per_batch: int = setting(
        "Target tokens of the global batch, padding included.",
        values="at least data.max_length, or data.packed_length if batches are packed",
    )
    batching: str = setting(
        "Batch pairs of similar length, or pack several pairs into each row.",
        choices=("buckets", "packed"),
        legacy="buckets",
    )
    num_buckets: int = setting(
        "Maximum number of padded shapes, hence of compilations.", at_least=1
    )
    bucket_lengths: str = setting(
        "Pad both sides of a bucket to one length, or each side to its own.",
        choices=("shared", "separate"),
        legacy="shared",
    )
    packed_length: int = setting(
        "Tokens of a packed row.",
        values="at least data.max_length if batches are packed",
        legacy=256,
    )
    text_form: str = setting(
        "Form of the text, which decides how BLEU tokenises it.",
        choices=("detokenized", "tokenized"),
        changeable=True,
        affects="scores",
    )
    lowercase_scores: bool = setting(
        "Whether scores ignore case.", changeable=True, affects="scores"
    )

    @property
    def planned_vocab_size(self) -> types.VocabSize:
        """V before the vocabulary is learned."""
        if self.vocabulary_sharing == "shared":
            return self.vocab_size
        if self.source == "treebank":  # The trees have the number of their symbols.
            trees = types.TreeIds(NUM_LABELS, bytes(-(-self.vocab_size // 8)))
            return types.VocabSizes(self.vocab_size, NUM_SYMBOLS, trees)
        return types.VocabSizes(
            self.vocab_size, self.target_vocab_size or self.vocab_size
        )

    @property
    def symbols(self) -> tuple[str, ...]:
        """The user symbols."""
        return tuple(filter(None, self.user_symbols.split(",")))

    @property
    def training_corpora(self) -> tuple[Corpus, ...]:
        """The corpora to mix; none if `train_source` is the training text."""
        return parse_corpora(self.corpora)

    @property
    def training_stages(self) -> tuple[Stage, ...]:
        """The stages of the mixture."""
        return parse_stages(self.stages)
