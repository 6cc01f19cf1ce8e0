"""Mistakes in the model, in what is exported of it, and in imported ones."""

from tests.benchmarks.mistakes.mistake import Mistake

TORCH = "tests/oracles/test_torch.py"
MARIAN = "tests/oracles/test_marian.py"
IMPORT = "tests/oracles/test_marian_import.py"
TRANSFORMER = "tests/model/test_transformer.py"
PARAMETERS = "tests/model/test_cost.py"
FLOPS = "tests/model/test_cost.py"

MISTAKES = (
    Mistake(
        "scores are divided by d_k, not by its root",
        "_masked_scores",
        "1 / math.sqrt($query.shape[-1])",
        "1 / $query.shape[-1]",
        f"{TORCH}::test_memory_and_logits_are_torchs",
    ),
    Mistake(
        "the normalisation stands before the sum",
        "Residual.__call__",
        "self.norm($x + $contribution)",
        "$x + self.norm($contribution)",
        f"{TORCH}::test_memory_and_logits_are_torchs",
    ),
    Mistake(
        "a target position sees the next one",
        "causal_mask",
        "(1, 1, $length, $length), dtype=bool)",
        "(1, 1, $length, $length), dtype=bool), 1",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "padding of the source is seen",
        "padding_mask",
        "$tokens != $types.PAD_ID",
        "$tokens >= $types.PAD_ID",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "lookups are not multiplied by the root of d_model",
        "Embedding.__call__",
        "axis=0) * math.sqrt(self.d_model)",
        "axis=0)",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "sinusoids of a base of 1,000",
        "sinusoids",
        "10000.0 **",
        "1000.0 **",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "no gradient through the softmax's side of the embedding",
        "Embedding.logits",
        "self.embedding.astype(self.dtype)",
        "__import__('jax').lax.stop_gradient(self.embedding)",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "hypotheses keep the ancestors of those they displaced",
        "BeamCache.reorder",
        "self.replace(ancestors=$chosen, words_written=$written)",
        "self.replace(words_written=$written)",
        f"{MARIAN}::test_marian_mt_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "hypotheses keep the next word of those they displaced",
        "BeamCache.reorder",
        "self.replace(ancestors=$chosen, words_written=$written)",
        "self.replace(ancestors=$chosen)",
        f"{TRANSFORMER}::test_decoding_step_by_step_equals_the_full_pass",
    ),
    Mistake(
        "the word that is next is the one that was written",
        "NextWord.__call__",
        "words.numbers[:, None, :] == written[:, :, None]",
        "words.numbers[:, None, :] == written[:, :, None] - 1",
        f"{TRANSFORMER}::test_logits_equal_the_formulas",
    ),
    Mistake(
        "cached attention does not see its own position",
        "Decoder.decode_step",
        "jnp.arange(T) <= $position",
        "jnp.arange(T) < $position",
        f"{MARIAN}::test_ctranslate2_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "a layer normalisation is not counted",
        "count_by_matrix",
        '"layer normalisation": (attentions + layers) *',
        '"layer normalisation": (attentions + encoder) *',
        f"{PARAMETERS}::test_the_count_of_every_row_is_that_of_the_model_it_builds",
    ),
    Mistake(
        "operations without the softmax's matrix",
        "forward_flops",
        "$logits = $target * $model.d_model * $vocab_size",
        "$logits = $target * $model.d_model",
        f"{FLOPS}::test_the_formula_counts_what_xla_counts",
    ),
    Mistake(
        "the figure of the positions has sines alone",
        "sinusoids",
        "[jnp.sin($angles), jnp.cos($angles)]",
        "[jnp.sin($angles), jnp.sin($angles)]",
        "tests/paper/test_figures.py",
    ),
    Mistake(
        "exported keys stand where values belong",
        "_fill_attention",
        '["query", "key", "value"]',
        '["query", "value", "key"]',
        f"{MARIAN}::test_ctranslate2_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "an imported model's sines stand where its cosines belong",
        "interleaving",
        "np.arange(0, $d_model, 2), np.arange(1, $d_model, 2)",
        "np.arange(1, $d_model, 2), np.arange(0, $d_model, 2)",
        f"{IMPORT}::test_an_imported_model_translates_and_scores_as_it_did",
    ),
)
