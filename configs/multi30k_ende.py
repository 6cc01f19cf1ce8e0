"""Multi30k En-De, the size of the published 41.02."""

import ml_collections


def get_config(text_form: str = "lc_norm_tok") -> ml_collections.ConfigDict:
    """The run on "lc_norm_tok" (published form) or "raw" (cased, untokenised)."""
    config = ml_collections.ConfigDict()
    config.seed = 1

    config.model = ml_collections.ConfigDict()
    config.model.num_layers = 4  # N
    config.model.d_model = 128
    config.model.d_ff = 256
    config.model.num_heads = 4  # h
    config.model.d_k = 32
    config.model.d_v = 32
    config.model.dropout_rate = 0.3  # P_drop
    config.model.attention_dropout_rate = 0.0
    config.model.relu_dropout_rate = 0.0
    config.model.layer_norm_position = "post"
    config.model.positional_encoding = "sinusoidal"
    config.model.max_positions = 1024
    config.model.dtype = "float32"

    config.data = ml_collections.ConfigDict()
    config.data.source = "text"
    config.data.source_locale = "en"
    config.data.target_locale = "de"
    config.data.text_directory = f"../shared/data/multi30k_ende/{text_form}"
    config.data.train_source = "train.en"
    config.data.train_target = "train.de"
    config.data.valid_source = "val.en"
    config.data.valid_target = "val.de"
    config.data.test_source = "test_2016_flickr.en"
    config.data.test_target = "test_2016_flickr.de"
    config.data.num_train = 0
    config.data.num_valid = 0
    config.data.num_test = 0
    config.data.directory = ""
    config.data.subword_model = "bpe"
    config.data.vocab_size = 10_000
    config.data.sentencepiece_sample_size = 1_000_000
    config.data.byte_fallback = True
    config.data.normalization = "identity"
    config.data.max_length = 100
    config.data.source_tokens_per_batch = 4096
    config.data.target_tokens_per_batch = 4096
    config.data.num_buckets = 6
    config.data.text_form = "tokenized" if text_form == "lc_norm_tok" else "detokenized"
    config.data.lowercase_scores = False

    config.optimizer = ml_collections.ConfigDict()
    config.optimizer.beta1 = 0.9
    config.optimizer.beta2 = 0.98
    config.optimizer.epsilon = 1e-9
    config.optimizer.warmup_steps = 2000
    config.optimizer.learning_rate_scale = 1.8

    config.training = ml_collections.ConfigDict()
    config.training.num_steps = 8000
    config.training.accumulate_steps = 1
    config.training.label_smoothing = 0.1  # eps_ls
    config.training.log_every_steps = 50
    config.training.evaluate_every_steps = 500
    config.training.checkpoint_every_steps = 250
    config.training.keep_checkpoints = 10
    config.training.average_checkpoints = 10

    config.search = ml_collections.ConfigDict()
    config.search.beam_size = 4
    config.search.length_penalty = 0.6  # alpha
    config.search.max_extra_tokens = 50
    config.search.max_source_tokens = 512
    config.search.source_tokens_per_batch = 4096
    return config
