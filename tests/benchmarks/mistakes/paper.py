"""Mistakes in the paper's numbers, configurations and figures."""

from tests.benchmarks.mistakes.mistake import Mistake

PRESETS = "tests/paper/test_presets.py"
PRINTED = "tests/paper/test_printed.py"
LAYERS = "tests/paper/test_table1.py"
HEADS = "tests/paper/test_attention_figures.py"

MISTAKES = (
    Mistake(
        "a misprinted perplexity (C5)",
        "TABLE3",
        "(4.66, 26.0, 168.0)",
        "(4.76, 26.0, 168.0)",
        f"{PRINTED}::test_table_3_has_the_printed_scores",
    ),
    Mistake(
        "a misprinted BLEU of table 2",
        "TABLE2",
        '"Transformer (big)", (28.4, 41.8)',
        '"Transformer (big)", (28.4, 41.0)',
        f"{PRINTED}::test_table_2_is_what_the_text_says_of_it",
    ),
    Mistake(
        "training on seven GPUs",
        "GPUS",
        "GPUS = 8",
        "GPUS = 7",
        f"{PRINTED}::test_the_printed_cost_is_hours_of_hardware",
    ),
    Mistake(
        "table 1's recurrence has n^2 d operations",
        "paper.table1",
        '"Recurrent": $n * $d * $d',
        '"Recurrent": $n * $n * $d',
        LAYERS,
    ),
    Mistake(
        "a conclusion holds whatever the difference",
        "paper.small_table3",
        '"holds" if $difference > 0 and not $same else "does not hold"',
        '"holds"',
        "tests/paper/test_small_table3.py",
    ),
    Mistake(
        "the report judges figures 3 to 5 by layer 4 of 6",
        "attention_figures.read_heads",
        "$alignment.default_layer(len($attention.encoder))",
        "$alignment.default_layer(len($attention.encoder)) - 1",
        f"{HEADS}::test_the_heads_are_those_of_layer_5_of_6",
    ),
    Mistake(
        "row B1 with a d_v of its own",
        "table3.ROWS",
        '"B1": {"model.d_k": 16}',
        '"B1": {"model.d_k": 16, "model.d_v": 16}',
        PRESETS,
    ),
    Mistake(
        "the big English-German model with a dropout of 0.1",
        "big_ende.get_config",
        ".dropout_rate = 0.3",
        ".dropout_rate = 0.1",
        f"{PRESETS}::test_the_presets_are_sections_5_and_6",
    ),
)
