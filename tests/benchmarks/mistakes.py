"""What `tests.benchmarks.planted_mistakes` plants, and which tests must notice it."""

import dataclasses

TORCH = "tests/oracles/test_torch.py"
MARIAN = "tests/oracles/test_marian.py"
IMPORT = "tests/oracles/test_marian_import.py"
PAPER = "tests/analysis/test_paper.py"
PARAMETERS = "tests/analysis/test_parameters.py"
FLOPS = "tests/analysis/test_flops.py"
LAYERS = "tests/analysis/test_layers.py"
LOSS = "tests/training/test_loss.py"
STEP = "tests/training/test_step.py"
BLEU = "tests/inference/test_bleu.py"
BEAM = "tests/inference/test_beam_search.py"
TFDS = "tests/data/test_datasets.py"


@dataclasses.dataclass(frozen=True)
class Mistake:
    """Text of a file, what to write instead, and the tests that must notice."""

    name: str
    file: str
    old: str
    new: str
    proof: str


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
        "vaswani_jax/training/schedule.py",
        "jnp.asarray(step, jnp.float32) + 1",
        "jnp.asarray(step, jnp.float32)",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the warm-up grows with warmup_steps^-1",
        "vaswani_jax/training/schedule.py",
        "warmup = step_num * warmup_steps**-1.5",
        "warmup = step_num * warmup_steps**-1.0",
        "tests/training/test_schedule.py",
    ),
    Mistake(
        "the doctest of the schedule is of another d_model",
        "vaswani_jax/training/schedule.py",
        "warmup_inverse_sqrt(d_model=512",
        "warmup_inverse_sqrt(d_model=1024",
        "vaswani_jax/training/schedule.py",
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
    Mistake(
        "a layer normalisation is not counted",
        "vaswani_jax/analysis/parameters.py",
        '"layer normalisation": 5 * N * 2 * d_model',
        '"layer normalisation": 4 * N * 2 * d_model',
        f"{PARAMETERS}::test_the_count_of_every_row_is_that_of_the_model_it_builds",
    ),
    Mistake(
        "a misprinted perplexity (C5)",
        "vaswani_jax/analysis/paper.py",
        "Variation(4.66, 26.0, 168.0)",
        "Variation(4.76, 26.0, 168.0)",
        f"{PAPER}::test_table_3_has_the_printed_scores",
    ),
    Mistake(
        "a misprinted BLEU of table 2",
        "vaswani_jax/analysis/paper.py",
        '"Transformer (big)", 28.4, 41.8',
        '"Transformer (big)", 28.4, 41.0',
        f"{PAPER}::test_table_2_is_the_printed_one",
    ),
    Mistake(
        "row B1 with a d_v of its own",
        "configs/table3.py",
        '"B1": {"model.d_k": 16}',
        '"B1": {"model.d_k": 16, "model.d_v": 16}',
        PAPER,
    ),
    Mistake(
        "the big English-German model with a dropout of 0.1",
        "configs/big_ende.py",
        "config.model.dropout_rate = 0.3",
        "config.model.dropout_rate = 0.1",
        f"{PAPER}::test_the_presets_are_sections_5_and_6",
    ),
    Mistake(
        "training on seven GPUs",
        "vaswani_jax/analysis/paper.py",
        "GPUS = 8",
        "GPUS = 7",
        f"{PAPER}::test_the_papers_cost_is_time_and_the_models_is_a_third_of_it",
    ),
    Mistake(
        "operations without the softmax's matrix",
        "vaswani_jax/analysis/flops.py",
        "logits = target * model.d_model * vocab_size",
        "logits = target * model.d_model",
        f"{FLOPS}::test_the_formula_counts_what_xla_counts",
    ),
    Mistake(
        "table 1's recurrence has n^2 d operations",
        "vaswani_jax/analysis/layers.py",
        '"Recurrent": n * d * d',
        '"Recurrent": n * n * d',
        LAYERS,
    ),
    Mistake(
        "the figure of the positions has sines alone",
        "vaswani_jax/model/positional_encoding.py",
        "jnp.stack([jnp.sin(angles), jnp.cos(angles)]",
        "jnp.stack([jnp.sin(angles), jnp.sin(angles)]",
        "tests/analysis/test_figures.py",
    ),
    Mistake(
        "a conclusion holds whatever the difference",
        "vaswani_jax/analysis/ablations.py",
        'return "holds" if difference > 0 and not same else "does not hold"',
        'return "holds"',
        "tests/analysis/test_ablations.py",
    ),
    Mistake(
        "Moses' tokens are not escaped",
        "vaswani_jax/inference/moses.py",
        "tokenizer.tokenize(line, escape=True)",
        "tokenizer.tokenize(line, escape=False)",
        f"{BLEU}::test_moses_tokenize_escapes_as_tokenizer_perl_does",
    ),
    Mistake(
        "compounds are split in the outputs alone",
        "vaswani_jax/inference/bleu.py",
        "references = [moses.split_compounds(line) for line in references]",
        "references = list(references)",
        f"{BLEU}::test_paper_bleu_is_the_formula_over_tokens_written_by_hand",
    ),
    Mistake(
        "quotes are those of ASCII in the references alone",
        "vaswani_jax/inference/bleu.py",
        "outputs = moses.ascii_punctuation(outputs)",
        "outputs = list(outputs)",
        f"{BLEU}::test_quotes_are_ascii_s_in_one_score_alone",
    ),
    Mistake(
        "no brevity penalty",
        "vaswani_jax/inference/bleu.py",
        "min(0.0, 1 - reference_length / output_length)",
        "0.0",
        "tests/inference/test_multi_bleu.py::test_multi_bleu_equals_the_formula",
    ),
    Mistake(
        "WMT14 the other way round",
        "vaswani_jax/data/datasets.py",
        "yield _line(record[data.source_locale]), _line(record[data.target_locale])",
        "yield _line(record[data.target_locale]), _line(record[data.source_locale])",
        f"{TFDS}::test_the_builders_pairs_are_those_of_the_archives",
    ),
    Mistake(
        "the last line of an archive's file is lost",
        "vaswani_jax/data/dataset_files.py",
        '            yield line.decode("utf-8").removesuffix("\\n")',
        '            if line.endswith(b"\\n"):\n'
        '                yield line.decode("utf-8").removesuffix("\\n")',
        f"{TFDS}::test_reading_line_by_line_changes_no_record",
    ),
    Mistake(
        "the vocabulary learns from the head of the text",
        "vaswani_jax/data/sources.py",
        "chosen = (-(-index * total // wanted) for index in range(wanted))",
        "chosen = iter(range(wanted))",
        "tests/data/test_preparation.py"
        "::test_the_vocabulary_learns_from_lines_spread_over_the_text",
    ),
)
