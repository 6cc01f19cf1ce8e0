"""Mistakes in what computes: the model, its training, its search, its exports."""

from tests.benchmarks.mistakes import Mistake

TORCH = "tests/oracles/test_torch.py"
MARIAN = "tests/oracles/test_marian.py"
IMPORT = "tests/oracles/test_marian_import.py"
LOSS = "tests/training/test_loss.py"
STEP = "tests/training/test_step.py"
BEAM = "tests/inference/test_beam_search.py"

MISTAKES = (
    Mistake(
        "scores are divided by d_k, not by its root",
        "vaswani_jax/model/attention.py",
        "    scale = 1 / math.sqrt(query.shape[-1])",
        "    scale = 1 / query.shape[-1]",
        f"{TORCH}::test_memory_and_logits_are_torchs",
    ),
    Mistake(
        "the normalisation stands before the sum",
        "vaswani_jax/model/residual.py",
        "return self.norm(x + contribution)",
        "return x + self.norm(contribution)",
        f"{TORCH}::test_memory_and_logits_are_torchs",
    ),
    Mistake(
        "a target position sees the next one",
        "vaswani_jax/model/masks.py",
        "(1, 1, length, length), dtype=bool)",
        "(1, 1, length, length), dtype=bool), 1",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "padding of the source is seen",
        "vaswani_jax/model/masks.py",
        "return (tokens != types.PAD_ID)[:",
        "return (tokens >= types.PAD_ID)[:",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "lookups are not multiplied by the root of d_model",
        "vaswani_jax/model/embeddings.py",
        "axis=0) * math.sqrt(self.d_model)",
        "axis=0)",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "sinusoids of a base of 1,000",
        "vaswani_jax/model/positional_encoding.py",
        "rates = 10000.0 **",
        "rates = 1000.0 **",
        f"{MARIAN}::test_marian_mt_has_our_logits",
    ),
    Mistake(
        "no gradient through the softmax's side of the embedding",
        "vaswani_jax/model/embeddings.py",
        "self.embedding.astype(self.dtype)",
        "__import__('jax').lax.stop_gradient(self.embedding)",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "smoothing over the V - 1 others where over all was asked",
        "vaswani_jax/training/loss.py",
        "spread = jnp.mean(logits, axis=-1)",
        "spread = (jnp.sum(logits, axis=-1) - chosen) / (V - 1)",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "padding is predicted, too",
        "vaswani_jax/training/loss.py",
        "real = target_out != types.PAD_ID",
        "real = target_out >= types.PAD_ID",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "Adam's beta_2 is the usual 0.999",
        "vaswani_jax/training/optimizer.py",
        "b2=settings.optimizer.beta2",
        "b2=0.999",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "Adam's epsilon is 1e-6",
        "vaswani_jax/training/optimizer.py",
        "eps=settings.optimizer.epsilon",
        "eps=1e-6",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the schedule counts from 0",
        "vaswani_jax/training/optimizer.py",
        "jnp.asarray(step, jnp.float32) + 1",
        "jnp.asarray(step, jnp.float32)",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the warm-up grows with warmup_steps^-1",
        "vaswani_jax/training/optimizer.py",
        "warmup = step_num * warmup_steps**-1.5",
        "warmup = step_num * warmup_steps**-1.0",
        "tests/training/test_optimizer.py",
    ),
    Mistake(
        "the doctest of the schedule is of another d_model",
        "vaswani_jax/training/optimizer.py",
        "warmup_inverse_sqrt(d_model=512",
        "warmup_inverse_sqrt(d_model=1024",
        "vaswani_jax/training/optimizer.py",
    ),
    Mistake(
        "devices add up their sums but not their gradients' parts",
        "vaswani_jax/training/step.py",
        "gradients, sums = parallel.sum_over_devices(found)",
        "gradients, sums = found[0], parallel.sum_over_devices(found[1])",
        f"{STEP}::test_three_updates_on_eight_devices_are_adam_in_numpy",
    ),
    Mistake(
        "the V - 1 others share between V",
        "vaswani_jax/training/loss.py",
        "- chosen) / (V - 1)",
        "- chosen) / V",
        f"{LOSS}::test_each_form_of_smoothing_is_that_of_its_definition",
    ),
    Mistake(
        "the form without padding gives padding its part",
        "vaswani_jax/training/loss.py",
        "- chosen - padding) / (V - 2)",
        "- chosen) / (V - 1)",
        f"{LOSS}::test_each_form_of_smoothing_is_that_of_its_definition",
    ),
    Mistake(
        "perplexity of the smoothed loss",
        "vaswani_jax/training/loss.py",
        "np.exp(np.asarray(sums.nll) / tokens)",
        "np.exp(np.asarray(sums.loss) / tokens)",
        f"{LOSS}::test_means_are_over_tokens_and_perplexity_is_that_of_the_plain_likelihood",
    ),
    Mistake(
        "hypotheses keep the ancestors of those they displaced",
        "vaswani_jax/model/decoder.py",
        "return self.replace(ancestors=chosen)",
        "return self",
        f"{MARIAN}::test_marian_mt_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "cached attention does not see its own position",
        "vaswani_jax/model/decoder.py",
        "(jnp.arange(T) <= position)",
        "(jnp.arange(T) < position)",
        f"{MARIAN}::test_ctranslate2_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "a search that ends with the first finished hypotheses",
        "vaswani_jax/inference/beam_search.py",
        "settled = search.finished_scores[:, num_hypotheses - 1] >= reachable",
        "settled = search.finished_scores[:, num_hypotheses - 1] > -jnp.inf",
        f"{MARIAN}::test_marian_mt_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "lp(Y) begins at (6 + |Y|) / 6",
        "vaswani_jax/inference/beam_search.py",
        "base = (5.0 + counted) / 6.0",
        "base = (6.0 + counted) / 6.0",
        f"{MARIAN}::test_marian_mt_finds_nothing_better_by_the_papers_penalty",
    ),
    Mistake(
        "a beam that extends its best hypothesis alone",
        "vaswani_jax/inference/beam_search.py",
        "origin = jnp.take_along_axis(extended.origin, kept, axis=1)",
        "origin = 0 * jnp.take_along_axis(extended.origin, kept, axis=1)",
        f"{BEAM}::test_a_model_s_search_finds_what_full_passes_find",
    ),
    Mistake(
        "exported keys stand where values belong",
        "vaswani_jax/exchange/ctranslate.py",
        'names = ["query", "key", "value"]',
        'names = ["query", "value", "key"]',
        f"{MARIAN}::test_ctranslate2_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "an imported model's sines stand where its cosines belong",
        "vaswani_jax/exchange/marian.py",
        "np.arange(0, d_model, 2), np.arange(1, d_model, 2)",
        "np.arange(1, d_model, 2), np.arange(0, d_model, 2)",
        f"{IMPORT}::test_an_imported_model_translates_and_scores_as_it_did",
    ),
)
