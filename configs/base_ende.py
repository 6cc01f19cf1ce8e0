"""The paper's base model on WMT14 English-German: the parent of all configurations.

  python -m vaswani_jax.main --config=configs/base_ende.py

Each value is the paper's, with its symbol or section beside it; "open" marks what the
paper does not say. The run downloads WMT14 through tensorflow-datasets (1.7 GB).

Paper: 8 P100 GPUs, 12 hours (0.4 s a step), 27.3 BLEU on newstest2014, tokenised and
with compounds split (paper_bleu_split_ascii).
Here: not run.
"""

import ml_collections


def get_config() -> ml_collections.ConfigDict:
    """Return the settings of tables 2 and 3, row "base"."""
    config = ml_collections.ConfigDict()
    config.seed = 1  # open
    config.model = _model()
    config.data = _data()
    config.optimizer = _optimizer()
    config.training = _training()
    config.search = _search()
    return config


def _model() -> ml_collections.ConfigDict:
    model = ml_collections.ConfigDict()
    model.num_layers = 6  # N
    model.num_encoder_layers = 0  # N, section 3.1
    model.num_decoder_layers = 0  # N, section 3.1
    model.d_model = 512  # d_model
    model.d_ff = 2048  # d_ff
    model.num_heads = 8  # h
    model.d_k = 64  # d_k
    model.d_v = 64  # d_v
    model.dropout_rate = 0.1  # P_drop
    model.attention_dropout_rate = 0.0  # section 5.4 does not drop out here
    model.relu_dropout_rate = 0.0  # nor here
    model.activation = "relu"  # equation 2
    model.deterministic_attention = False  # not in the paper; for parsing only
    model.attention_bias = False  # section 3.2.2: projections are matrices
    model.logits_bias = False  # section 3.4: a linear transformation
    model.layer_norm_epsilon = 1e-6  # open; as in the authors' code
    model.init_scale = 1.0  # open; Glorot's, as in the authors' code
    model.layer_norm_position = "post"  # section 3.1: LayerNorm(x + Sublayer(x))
    model.positional_encoding = "sinusoidal"  # section 3.5
    model.max_positions = 1024  # for learned encodings only
    model.dtype = "float32"  # open
    model.attention = "xla"  # how it is computed
    model.rematerialize = False  # how it is computed
    return model


def _data() -> ml_collections.ConfigDict:
    data = ml_collections.ConfigDict()
    data.source = "tfds:wmt14_translate/de-en"  # section 5.1: 4.5M pairs
    data.source_locale = "en"  # newstest2014 English-to-German
    data.target_locale = "de"
    data.tfds_directory = ""  # tensorflow-datasets' default
    data.text_directory = ""  # own_text.py has text files
    data.train_source = ""
    data.train_target = ""
    # Not in the paper, like the next three. A list may replace the text: no type.
    data.corpora = ml_collections.FieldReference("", field_type=object)
    data.corpora_temperature = 1.0  # for several corpora only
    data.epoch_pairs = 0
    data.stages = ml_collections.FieldReference("", field_type=object)
    data.valid_source = ""
    data.valid_target = ""
    data.test_source = ""
    data.test_target = ""
    data.train_trees = ""  # for trees alone, section 6.3, like the next five
    data.valid_trees = ""
    data.test_trees = ""
    data.silver_trees = ""
    data.gold_repeats = 1
    data.tree_terminals = "tag"
    data.num_train = 0  # no pairs to generate
    data.num_valid = 0
    data.num_test = 0
    data.directory = ""  # WORKDIR/data
    data.vocabulary = ""  # learned from the text
    data.target_vocabulary = ""  # for separate vocabularies only
    data.vocabulary_sharing = "shared"  # section 5.1
    data.user_symbols = ""  # not in the paper
    # Deviation: SentencePiece's, of raw text. The paper does not name its form of text.
    data.subword_model = "bpe"  # section 5.1: byte-pair encoding
    data.vocab_size = 37_000  # section 5.1: "about 37000", shared
    data.target_vocab_size = 0  # for separate vocabularies only
    data.character_coverage = 0.0  # open; 0.9999 with byte_fallback
    data.split_digits = False  # open
    data.max_subword_length = 16  # open; SentencePiece's default
    data.sentencepiece_sample_size = 4_000_000  # open
    data.byte_fallback = True  # open
    data.normalization = "identity"  # open
    data.subword_dropout = 0.0  # not in the paper
    data.subword_samples = 1  # not in the paper
    data.max_length = 256  # open
    data.clean_empty = False  # this and the next nine: no cleaning
    data.clean_control_characters = False
    data.clean_encodings = False
    data.clean_max_characters = 0
    data.clean_equal_sides = False
    data.clean_max_ratio = 0.0
    data.clean_min_letters = 0.0
    data.clean_min_script = 0.0
    data.clean_language_odds = 0.0
    data.clean_duplicates = False
    data.source_tokens_per_batch = 25_000  # section 5.1: "approximately 25000"
    data.target_tokens_per_batch = 25_000  # section 5.1
    data.batching = "buckets"  # section 5.1: "by approximate sequence length"
    data.num_buckets = 8  # open
    data.bucket_lengths = "shared"  # open
    data.packed_length = 256  # for packed batches only
    data.text_form = "detokenized"  # as in WMT14; scores tokenise it
    data.lowercase_scores = False  # open
    return data


def _optimizer() -> ml_collections.ConfigDict:
    optimizer = ml_collections.ConfigDict()
    optimizer.beta1 = 0.9  # beta_1
    optimizer.beta2 = 0.98  # beta_2
    optimizer.epsilon = 1e-9  # epsilon
    optimizer.warmup_steps = 4000  # warmup_steps, equation 3
    optimizer.learning_rate_scale = 1.0  # equation 3 has no other factor
    optimizer.schedule = "paper"  # equation 3
    optimizer.learning_rate = 0.0  # for other schedules only
    optimizer.max_gradient_norm = 0.0  # the paper does not clip gradients
    optimizer.weight_decay = 0.0  # the paper has Adam
    optimizer.frozen = ""  # all parameters learn
    return optimizer


def _training() -> ml_collections.ConfigDict:
    training = ml_collections.ConfigDict()
    training.num_steps = 100_000  # train steps, table 3
    training.accumulate_steps = "1"  # the whole batch at once
    training.shard_optimizer = False  # the paper does not divide the moments
    training.label_smoothing = 0.1  # epsilon_ls
    # Open: Szegedy et al., whom the paper cites, spread epsilon_ls over all V subwords;
    # the authors' code over the V - 1 other ones ("others").
    training.label_smoothing_form = "uniform"
    training.r_drop = 0.0  # not in the paper
    training.log_every_steps = 100  # open
    training.loggers = ""  # how it is recorded
    training.evaluate_every_steps = 5000  # open
    # Section 6.1: 10 minutes, at 0.4 s a step. The last interval has 1,000 steps.
    training.checkpoint_every_steps = 1500
    training.keep_checkpoints = 10  # open
    training.ema_decay = 0.0  # section 6.1 averages checkpoints instead
    training.average_checkpoints = 5  # section 6.1
    training.best_metric = "bleu"  # not in the paper
    training.patience = 0  # section 5.2: a fixed number of steps
    training.max_skipped_batches = 3  # open
    training.max_loss_rise = 0.0  # open; no limit
    return training


def _search() -> ml_collections.ConfigDict:
    search = ml_collections.ConfigDict()
    search.beam_size = 4  # section 6.1
    search.length_penalty = 0.6  # alpha, section 6.1
    search.length_penalty_form = "paper"  # section 6.1 cites Wu et al. (2016)
    search.max_extra_tokens = 50  # section 6.1: input length + 50
    search.min_tokens = 1  # no limit
    search.max_tokens = 0  # no other limit
    search.no_repeat_ngram = 0  # no limit
    search.legal_trees = True  # not in the paper; for parsing only
    search.sampling = False  # section 6.1: beam search
    search.temperature = 1.0  # for sampling only, like the next two
    search.top_k = 0  # all tokens
    search.top_p = 1.0  # all tokens
    search.max_source_tokens = 512  # open
    search.source_tokens_per_batch = 4096  # how it is computed
    return search
