"""Your own parallel text with the paper's base model (or a small one for a CPU).

Two files a split, one sentence a line, the same number of lines on both sides:

  python -m vaswani_jax.main --config=configs/own_text.py --workdir=runs/own \\
      --config.data.text_directory=DIR --config.data.source_locale=en \\
      --config.data.target_locale=de

DIR holds train.source, train.target, valid.source, valid.target, test.source and
test.target (.gz works; other names by --config.data.train_source=..., no test set by
--config.data.test_source= --config.data.test_target=).
`--config=configs/own_text.py:small` is a model for tens of thousands of pairs, `:big`
the paper's big one.

Hardware, time, score: not run as it stands; configs/multi30k_ende.py is the small
model on real text.
"""

import ml_collections


def get_config(size: str = "base") -> ml_collections.ConfigDict:
    """The parent of the other configurations.

    Args:
        size: "base" or "big" as table 3 has them, or "small".
    """
    config = ml_collections.ConfigDict()
    config.seed = 1
    config.model = _model()
    config.data = _data()
    config.optimizer = _optimizer()
    config.training = _training()
    config.search = _search()
    if size not in SIZES:
        raise ValueError(f"own_text.py has {', '.join(SIZES)}, got {size!r}")
    config.update_from_flattened_dict(SIZES[size])
    return config


SMALL = {
    "model.num_layers": 4,
    "model.d_model": 128,
    "model.d_ff": 256,
    "model.num_heads": 4,
    "model.d_k": 32,
    "model.d_v": 32,
    "model.dropout_rate": 0.3,
    "data.vocab_size": 10_000,
    "data.max_length": 100,
    "data.source_tokens_per_batch": 4096,
    "data.target_tokens_per_batch": 4096,
    "data.num_buckets": 6,
    "optimizer.warmup_steps": 2000,
    "optimizer.learning_rate_scale": 1.8,
    "training.num_steps": 8000,
    "training.log_every_steps": 50,
    "training.evaluate_every_steps": 500,
    "training.checkpoint_every_steps": 250,
}

BIG = {
    "model.d_model": 1024,
    "model.d_ff": 4096,
    "model.num_heads": 16,
    "model.dropout_rate": 0.3,
    "training.num_steps": 300_000,
    "training.keep_checkpoints": 20,
    "training.average_checkpoints": 20,
}
SIZES: dict[str, dict[str, int | float]] = {"base": {}, "big": BIG, "small": SMALL}


def _model() -> ml_collections.ConfigDict:
    model = ml_collections.ConfigDict()
    model.num_layers = 6  # N
    model.d_model = 512
    model.d_ff = 2048
    model.num_heads = 8  # h
    model.d_k = 64
    model.d_v = 64
    model.dropout_rate = 0.1  # P_drop
    model.attention_dropout_rate = 0.0
    model.relu_dropout_rate = 0.0
    model.layer_norm_position = "post"  # section 3.1
    model.positional_encoding = "sinusoidal"  # section 3.5
    model.max_positions = 1024
    model.dtype = "float32"
    model.attention = "xla"
    model.rematerialize = False
    return model


def _data() -> ml_collections.ConfigDict:
    data = ml_collections.ConfigDict()
    data.source = "text"
    data.source_locale = ""  # the direction is the user's: en, de, pt_BR, ...
    data.target_locale = ""
    data.text_directory = "."
    data.train_source = "train.source"
    data.train_target = "train.target"
    data.valid_source = "valid.source"
    data.valid_target = "valid.target"
    data.test_source = "test.source"
    data.test_target = "test.target"
    data.num_train = 0
    data.num_valid = 0
    data.num_test = 0
    data.directory = ""
    data.subword_model = "bpe"
    data.vocab_size = 37_000  # section 5.1, En-De
    data.sentencepiece_sample_size = 10_000_000
    data.byte_fallback = True
    data.normalization = "identity"
    data.subword_dropout = 0.0
    data.subword_samples = 1
    data.max_length = 256
    data.source_tokens_per_batch = 25_000  # section 5.1
    data.target_tokens_per_batch = 25_000
    data.batching = "buckets"
    data.num_buckets = 8
    data.packed_length = 256
    data.text_form = "detokenized"
    data.lowercase_scores = False
    return data


def _optimizer() -> ml_collections.ConfigDict:
    optimizer = ml_collections.ConfigDict()
    optimizer.beta1 = 0.9
    optimizer.beta2 = 0.98
    optimizer.epsilon = 1e-9
    optimizer.warmup_steps = 4000
    optimizer.learning_rate_scale = 1.0
    return optimizer


def _training() -> ml_collections.ConfigDict:
    training = ml_collections.ConfigDict()
    training.num_steps = 100_000
    training.accumulate_steps = "1"  # or "auto": as few as the memory allows
    training.label_smoothing = 0.1  # eps_ls
    training.log_every_steps = 100
    training.evaluate_every_steps = 5000
    training.checkpoint_every_steps = 1500  # 10 minutes at the paper's 0.4 s a step
    training.keep_checkpoints = 10
    training.average_checkpoints = 5  # section 6.1
    return training


def _search() -> ml_collections.ConfigDict:
    search = ml_collections.ConfigDict()
    search.beam_size = 4
    search.length_penalty = 0.6  # alpha
    search.max_extra_tokens = 50
    search.max_source_tokens = 512
    search.source_tokens_per_batch = 4096
    return search
