"""Declare every setting of a run: type, range, meaning and role, once, on its field.

`configs/*.py` has the values, `core.rules` and `core.data_rules` the rules between
several settings. A new setting is a field here, in `core.data_config` or in
`core.training_config`, its values there, and its use.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from vaswani_jax.core.data_config import DataConfig as DataConfig
from vaswani_jax.core.settings import declared, setting
from vaswani_jax.core.training_config import OptimizerConfig, TrainingConfig

# Importing a model sets these, too.
model_setting = functools.partial(setting, imported=True)
# Each decoding may change these; scores depend on them.
search_setting = functools.partial(setting, changeable=True, affects="scores")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The architecture, section 3 and table 3."""

    num_layers: int = model_setting(
        "Layers of the encoder, and of the decoder.", symbol="N", at_least=1
    )
    num_encoder_layers: int = model_setting(
        "Layers of the encoder; 0 for model.num_layers.", at_least=0, legacy=0
    )
    num_decoder_layers: int = model_setting(
        "Layers of the decoder; 0 for model.num_layers.", at_least=0, legacy=0
    )
    d_model: int = model_setting(
        "Width of embeddings and layers; even if positions are sinusoids.", at_least=1
    )
    d_ff: int = model_setting("Inner width of the feed-forward networks.", at_least=1)
    num_heads: int = model_setting(
        "Attention heads.", symbol="h", at_least=1, affects="outputs"
    )
    d_k: int = model_setting("Width of each head's queries and keys.", at_least=1)
    d_v: int = model_setting("Width of each head's values.", at_least=1)
    dropout_rate: float = model_setting(
        "Dropout of sub-layer outputs and embeddings, section 5.4.",
        symbol="P_drop",
        at_least=0,
        below=1,
        changeable=True,
    )
    attention_dropout_rate: float = model_setting(
        "Dropout of attention weights; 0 in the paper.",
        at_least=0,
        below=1,
        changeable=True,
    )
    relu_dropout_rate: float = model_setting(
        "Dropout inside the feed-forward networks; 0 in the paper.",
        at_least=0,
        below=1,
        changeable=True,
    )
    activation: str = model_setting(
        "Activation of the feed-forward networks; swish is MarianMT's.",
        choices=("relu", "swish"),
        legacy="relu",
        affects="outputs",
    )
    deterministic_attention: bool = model_setting(
        "Parsers only: add the next word's encoder state to the decoder's input.",
        legacy=False,
        affects="outputs",
    )
    attention_bias: bool = model_setting(
        "Whether the projections of attention have a bias; the paper's have none.",
        legacy=False,
    )
    logits_bias: bool = model_setting(
        "Whether the pre-softmax transformation has a bias; the paper's has none.",
        legacy=False,
    )
    layer_norm_epsilon: float = model_setting(
        "Added to the variance in layer normalisation.",
        above=0,
        legacy=1e-6,
        affects="outputs",
    )
    init_scale: float = model_setting(
        "Scale of the variance of initial weights; 1 is Glorot's.", above=0, legacy=1.0
    )
    layer_norm_position: str = model_setting(
        "Normalise after each residual addition (post, section 3.1) or before (pre).",
        choices=("post", "pre"),
        affects="outputs",
    )
    positional_encoding: str = model_setting(
        "Sinusoids (section 3.5), or learned positions (table 3, row E).",
        choices=("sinusoidal", "learned"),
        affects="outputs",
    )
    max_positions: int = model_setting(
        "Rows of the table of learned positions; the sinusoids have no limit.",
        at_least=1,
    )
    dtype: str = model_setting(
        "Type in which matrix products are computed; float32 is that on any device.",
        choices=("float32", "bfloat16"),
        incidental=True,
    )
    attention: str = model_setting(
        "How training computes attention: by XLA, or by cuDNN's fused kernel.",
        choices=("xla", "cudnn"),
        changeable=True,
        legacy="xla",
        incidental=True,
    )
    rematerialize: bool = model_setting(
        "Compute layers again in the backward pass, to save memory.",
        changeable=True,
        legacy=False,
        incidental=True,
    )

    @property
    def encoder_layers(self) -> int:
        """Layers of the encoder."""
        return self.num_encoder_layers or self.num_layers

    @property
    def decoder_layers(self) -> int:
        """Layers of the decoder."""
        return self.num_decoder_layers or self.num_layers

    @property
    def position_limit(self) -> int | None:
        """The most tokens that learned positions have room for; None for sinusoids."""
        return self.max_positions if self.positional_encoding == "learned" else None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Beam search, section 6.1."""

    beam_size: int = search_setting(
        "Hypotheses kept at each step; 1 is greedy.", at_least=1
    )
    length_penalty: float = search_setting(
        "Exponent of the length penalty.", symbol="alpha", at_least=0
    )
    length_penalty_form: str = search_setting(
        "Divisor of log-probabilities: paper, ((5 + |Y|) / 6)^alpha; power, |Y|^alpha.",
        choices=("paper", "power"),
        legacy="paper",
    )
    max_extra_tokens: int = search_setting(
        "Maximum tokens of an output beyond its input's length; 50 in the paper.",
        at_least=1,
    )
    min_tokens: int = search_setting(
        "Minimum tokens of an output, its end mark included; 1 for no limit.",
        at_least=1,
        legacy=1,
    )
    max_tokens: int = search_setting(
        "Maximum tokens of an output, whatever its input's length; 0 for no limit.",
        values="0, or at least search.min_tokens",
        at_least=0,
        legacy=0,
    )
    no_repeat_ngram: int = search_setting(
        "Length of n-grams that no output has twice; 0 for no limit.",
        at_least=0,
        legacy=0,
    )
    legal_trees: bool = search_setting(
        "Restrict a parser's search to one tree over its words; not in the paper.",
        legacy=True,
    )
    sampling: bool = search_setting(
        "Draw outputs at random instead of searching.", legacy=False
    )
    temperature: float = search_setting(
        "Divisor of the logits when sampling; 1 for the model's distribution.",
        above=0,
        legacy=1.0,
        needs=("search.sampling",),
    )
    top_k: int = search_setting(
        "Number of likeliest subwords to sample from; 0 for all.",
        at_least=0,
        legacy=0,
        needs=("search.sampling",),
    )
    top_p: float = search_setting(
        "Probability of the likeliest subwords to sample from; 1 for all.",
        above=0,
        at_most=1,
        legacy=1.0,
        needs=("search.sampling",),
    )
    max_source_tokens: int = search_setting(
        "Maximum tokens of a source line; longer lines are translated in pieces.",
        at_least=2,
        incidental=True,
    )
    source_tokens_per_batch: int = setting(
        "Source tokens of a batch, padding included.",
        at_least=1,
        changeable=True,
        incidental=True,
    )

    @property
    def max_target_tokens(self) -> int:
        """The most tokens of the longest source's target."""
        return self.max_source_tokens + self.max_extra_tokens


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """All settings of a run."""

    model: ModelConfig
    data: DataConfig
    optimizer: OptimizerConfig
    training: TrainingConfig
    search: SearchConfig
    seed: int = setting(
        "Seed of weights, dropout, batches and sampling; a new run's is at most "
        "4294967295.",
        at_least=0,
        at_most=2**63 - 1,
        incidental=True,
    )


SETTINGS = declared(Config)
# Names of files, which may differ between hosts, and what process 0 alone uses.
LOCAL_SETTINGS = {
    *("data.corpora", "data.train_trees", "data.valid_trees", "data.test_trees"),
    *("data.silver_trees", "training.loggers"),
    *(key for key, setting in SETTINGS.items() if setting.is_path),
}


def flatten(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested values (a configuration, or some sections) by dotted keys.

    >>> flatten({"seed": 1, "search": {"beam_size": 4}})
    {'seed': 1, 'search.beam_size': 4}
    """
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= {f"{name}.{key}": leaf for key, leaf in value.items()}
        else:
            flat[name] = value
    return flat


def flatten_record(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return recorded values (a configuration, or some sections) by dotted keys.

    Settings that did not exist when the run was recorded get the value that reproduces
    its behaviour.
    """
    flat = {
        setting.key: setting.legacy
        for setting in SETTINGS.values()
        if setting.legacy is not None and setting.section in values
    } | flatten(values)
    if "training.accumulate_steps" in flat:  # Early runs recorded a number.
        flat["training.accumulate_steps"] = str(flat["training.accumulate_steps"])
    return flat


def to_dict(config: Config) -> dict[str, Any]:
    """Return the nested dictionary that runs record and `parsing.parse` accepts."""
    return dataclasses.asdict(config)


def shared_values(config: Config) -> dict[str, Any]:
    """Return the values that must be equal in all processes, by dotted key.

    Names of files may differ, as a text may lie elsewhere on each host.
    """
    values = flatten(to_dict(config))
    corpora = [
        dataclasses.replace(corpus, source="", target="")
        for corpus in config.data.training_corpora
    ]
    return {
        **{key: value for key, value in values.items() if key not in LOCAL_SETTINGS},
        "data.corpora": corpora,
    }
