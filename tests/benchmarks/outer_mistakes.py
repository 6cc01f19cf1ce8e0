"""Mistakes around the model: the paper's numbers, the configs, scores and data."""

from tests.benchmarks.mistakes import Mistake

PAPER = "tests/paper/test_printed.py"
PARAMETERS = "tests/model/test_parameters.py"
FLOPS = "tests/model/test_flops.py"
LAYERS = "tests/paper/test_layers.py"
BLEU = "tests/evaluation/test_bleu.py"
TFDS = "tests/data/test_tfds.py"

MISTAKES = (
    Mistake(
        "a layer normalisation is not counted",
        "vaswani_jax/model/cost.py",
        '"layer normalisation": 5 * N * 2 * d_model',
        '"layer normalisation": 4 * N * 2 * d_model',
        f"{PARAMETERS}::test_the_count_of_every_row_is_that_of_the_model_it_builds",
    ),
    Mistake(
        "a misprinted perplexity (C5)",
        "vaswani_jax/paper/printed.py",
        "Variation(4.66, 26.0, 168.0)",
        "Variation(4.76, 26.0, 168.0)",
        f"{PAPER}::test_table_3_has_the_printed_scores",
    ),
    Mistake(
        "a misprinted BLEU of table 2",
        "vaswani_jax/paper/printed.py",
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
        "vaswani_jax/paper/printed.py",
        "GPUS = 8",
        "GPUS = 7",
        f"{PAPER}::test_the_papers_cost_is_time_and_the_models_is_a_third_of_it",
    ),
    Mistake(
        "operations without the softmax's matrix",
        "vaswani_jax/model/cost.py",
        "logits = target * model.d_model * vocab_size",
        "logits = target * model.d_model",
        f"{FLOPS}::test_the_formula_counts_what_xla_counts",
    ),
    Mistake(
        "table 1's recurrence has n^2 d operations",
        "vaswani_jax/paper/layers.py",
        '"Recurrent": n * d * d',
        '"Recurrent": n * n * d',
        LAYERS,
    ),
    Mistake(
        "the figure of the positions has sines alone",
        "vaswani_jax/model/positional_encoding.py",
        "jnp.stack([jnp.sin(angles), jnp.cos(angles)]",
        "jnp.stack([jnp.sin(angles), jnp.sin(angles)]",
        "tests/paper/test_figures.py",
    ),
    Mistake(
        "a conclusion holds whatever the difference",
        "vaswani_jax/paper/table3.py",
        'return "holds" if difference > 0 and not same else "does not hold"',
        'return "holds"',
        "tests/paper/test_ablations.py",
    ),
    Mistake(
        "Moses' tokens are not escaped",
        "vaswani_jax/evaluation/bleu.py",
        "tokenizer.tokenize(line, escape=True)",
        "tokenizer.tokenize(line, escape=False)",
        f"{BLEU}::test_moses_tokenize_escapes_as_tokenizer_perl_does",
    ),
    Mistake(
        "compounds are split in the outputs alone",
        "vaswani_jax/evaluation/bleu.py",
        "references = [moses.split_compounds(line) for line in references]",
        "references = list(references)",
        f"{BLEU}::test_paper_bleu_is_the_formula_over_tokens_written_by_hand",
    ),
    Mistake(
        "quotes are those of ASCII in the references alone",
        "vaswani_jax/evaluation/bleu.py",
        "outputs = moses.ascii_punctuation(outputs)",
        "outputs = list(outputs)",
        f"{BLEU}::test_quotes_are_ascii_s_in_one_score_alone",
    ),
    Mistake(
        "no brevity penalty",
        "vaswani_jax/evaluation/bleu.py",
        "min(0.0, 1 - reference_length / output_length)",
        "0.0",
        "tests/evaluation/test_multi_bleu.py::test_multi_bleu_equals_the_formula",
    ),
    Mistake(
        "WMT14 the other way round",
        "vaswani_jax/data/tfds.py",
        "yield _line(record[data.source_locale]), _line(record[data.target_locale])",
        "yield _line(record[data.target_locale]), _line(record[data.source_locale])",
        f"{TFDS}::test_the_builders_pairs_are_those_of_the_archives",
    ),
    Mistake(
        "the last line of an archive's file is lost",
        "vaswani_jax/data/tfds.py",
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
        "tests/data/test_prepare.py"
        "::test_the_vocabulary_learns_from_lines_spread_over_the_text",
    ),
)
