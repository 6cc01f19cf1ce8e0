"""Every setting a run has (sections 3, 5 and 6.1; table 3's symbols).

The classes hold fields and types and no default: `configs/*.py` has the values,
`core.parsing` the rules.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

# What runs did before there were these settings.
ADDED_LATER = {
    "model.activation": "relu",
    "model.attention_bias": False,
    "model.logits_bias": False,
    "model.layer_norm_epsilon": 1e-6,
    "model.init_scale": 1.0,
    "model.attention": "xla",
    "model.rematerialize": False,
    "data.tfds_directory": "",
    "data.batching": "buckets",
    "data.packed_length": 256,
    "data.subword_dropout": 0.0,
    "data.subword_samples": 1,
    "training.label_smoothing_form": "uniform",
    "training.r_drop": 0.0,
    "training.best_metric": "bleu",
    "training.patience": 0,
    "training.max_skipped_batches": 0,
    "training.max_loss_rise": 0.0,
    "search.length_penalty_form": "paper",
    "search.min_tokens": 1,
    "search.max_tokens": 0,
    "search.no_repeat_ngram": 0,
    "search.sampling": False,
    "search.temperature": 1.0,
    "search.top_k": 0,
    "search.top_p": 1.0,
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The architecture, section 3 and table 3."""

    num_layers: int  # N
    d_model: int
    d_ff: int
    num_heads: int  # h
    d_k: int
    d_v: int
    dropout_rate: float  # P_drop, section 5.4
    attention_dropout_rate: float  # 0 in the paper
    relu_dropout_rate: float  # 0 in the paper
    activation: str  # of the feed-forward networks: "relu", or MarianMT's "swish"
    attention_bias: bool  # of attention's projections; the paper has none
    logits_bias: bool  # of the pre-softmax transformation; the paper has none
    layer_norm_epsilon: float
    init_scale: float  # of the sub-layers' first weights; 1 is Glorot's
    layer_norm_position: str  # "post" as section 3.1, or "pre"
    positional_encoding: str  # "sinusoidal", or "learned" (table 3 row E)
    max_positions: int  # rows of the learned table; the sinusoids have no limit
    dtype: str  # of the matrix products: "float32" or "bfloat16"
    attention: str  # in training: "xla", or "cudnn" in one kernel of an NVIDIA GPU
    rematerialize: bool  # compute a layer again in the backward pass, to save memory


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Text, vocabulary and batches, section 5.1."""

    source: str  # "text", "cldr", "copy", "reverse" or "tfds:DATASET/PAIR"
    source_locale: str  # language of each side, as a locale: en, de, pt_BR
    target_locale: str
    tfds_directory: str  # of tensorflow-datasets; "" means where it keeps its own
    text_directory: str  # where the files below lie, for "text"
    train_source: str
    train_target: str
    valid_source: str
    valid_target: str
    test_source: str
    test_target: str
    num_train: int  # pairs to generate, for "cldr", "copy" and "reverse"
    num_valid: int
    num_test: int
    directory: str  # prepared data; "" means WORKDIR/data
    subword_model: str  # "bpe" or "unigram"
    vocab_size: int
    sentencepiece_sample_size: int  # lines it learns from, spread over the corpus
    byte_fallback: bool  # unknown characters as bytes; otherwise as one unknown id
    normalization: str  # SentencePiece rule: "identity", "nfkc", "nmt_nfkc", ...
    subword_dropout: float  # of BPE's merges, in the training text; 0 in the paper
    subword_samples: int  # segmentations of each training pair, if they are sampled
    max_length: int  # tokens of a training sentence, its end mark counted
    source_tokens_per_batch: int  # padded tokens of the GLOBAL batch
    target_tokens_per_batch: int
    batching: str  # "buckets" of similar length, or "packed": several pairs in a row
    num_buckets: int  # padded shapes, hence compilations, at most
    packed_length: int  # tokens of a packed row
    text_form: str  # "detokenized" or "tokenized": how scores treat the text
    lowercase_scores: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptimizerConfig:
    """Adam and its schedule, section 5.3."""

    beta1: float
    beta2: float
    epsilon: float
    warmup_steps: int
    learning_rate_scale: float  # 1 in the paper


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """The run, sections 5.2 to 5.4."""

    num_steps: int
    accumulate_steps: str  # the batch is computed in so many parts, or "auto"
    label_smoothing: float  # eps_ls
    label_smoothing_form: str  # "uniform", "others" or "no_pad": see training.loss
    r_drop: float  # alpha of R-Drop, see training.loss; 0, as in the paper, for none
    log_every_steps: int
    evaluate_every_steps: int
    checkpoint_every_steps: int
    keep_checkpoints: int
    average_checkpoints: int  # section 6.1: the last 5 (base) or 20 (big)
    best_metric: str  # of validation: "bleu" or "loss"
    patience: int  # evaluations without a better one before the end; 0 for no limit
    max_skipped_batches: int  # that gave no finite loss or a spike, before the end
    max_loss_rise: float  # nats per token that make a spike; 0 for any


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search, section 6.1."""

    beam_size: int
    length_penalty: float  # alpha
    length_penalty_form: str  # "paper": ((5 + |Y|) / 6)^alpha, or "power": |Y|^alpha
    max_extra_tokens: int  # output length at most input length + this
    min_tokens: int  # of an output, its end mark counted; 1 for no limit
    max_tokens: int  # of an output, whatever the input's length; 0 for no limit
    no_repeat_ngram: int  # no output has so many tokens in a row twice; 0 for any
    sampling: bool  # draw outputs at random instead of searching
    temperature: float  # of what is drawn; 1 is the model's own distribution
    top_k: int  # draw from so many likeliest tokens; 0 for all
    top_p: float  # draw from the likeliest with this probability; 1 for all
    max_source_tokens: int  # a longer line is translated in pieces
    source_tokens_per_batch: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """All of a run."""

    model: ModelConfig
    data: DataConfig
    optimizer: OptimizerConfig
    training: TrainingConfig
    search: SearchConfig
    seed: int


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, or some sections of one, by dotted keys.

    >>> flatten({"seed": 1, "search": {"beam_size": 4}})
    {'seed': 1, 'search.beam_size': 4}
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": own for key, own in value.items()}
        else:
            flat[name] = value
    return flat


def recorded(values: Mapping[str, Any]) -> dict[str, Any]:
    """`flatten` of a configuration that some run has recorded.

    What was no setting when it was recorded has the value of how it was then.
    """
    later = {k: v for k, v in ADDED_LATER.items() if k.partition(".")[0] in values}
    found = later | flatten(values)
    if "training.accumulate_steps" in found:  # It was a number.
        parts = found["training.accumulate_steps"]
        found["training.accumulate_steps"] = str(parts)
    return found


def to_dict(config: Config) -> dict[str, Any]:
    """The plain nested dictionary that `parsing.parse` accepts, for records."""
    return dataclasses.asdict(config)
