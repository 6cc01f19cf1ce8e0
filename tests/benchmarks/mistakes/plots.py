"""Mistakes in pictures and pages of attention."""

from tests.benchmarks.mistakes.mistake import Mistake

CONTENTS = "tests/pages/test_contents.py"
PAGE = "tests/pages/test_html.py"
LAYER = "tests/plots/test_attention_layer.py"
LINES = "tests/plots/test_attention_lines.py"
FIGURE1 = "tests/plots/test_architecture.py"
PLOT = "tests/programs/test_plot.py"

MISTAKES = (
    Mistake(
        "a figure shows the layer below",
        "read_layer",
        "$attention.encoder[$layer]",
        "$attention.encoder[$layer - 1]",
        f"{LAYER}::test_subwords_have_the_weights_of_their_layer",
    ),
    Mistake(
        "a figure counts heads from 0",
        "_draw_panel",
        "[$head - 1 for",
        "[$head % len(layer.weights) for",
        f"{LINES}::test_figure_3_shows_all_heads_from_one_word",
    ),
    Mistake(
        "a figure's lines lead from keys to queries",
        "_draw_lines",
        "(($start, $lower), ($end, $upper))",
        "(($end, $lower), ($start, $upper))",
        f"{LINES}::test_figure_5_shows_two_heads_in_green_and_red",
    ),
    Mistake(
        "a figure's word has the mean of its subwords",
        "read_layer",
        "@ $weights @ $is_part.T",
        "@ $weights @ share.T",
        f"{LAYER}::test_words_sum_what_is_looked_at_and_average_what_looks",
    ),
    Mistake(
        "figure 1 draws the normalisation on the other side",
        "_read_layer",
        "$names.index(NORM) < $names.index(",
        "$names.index(NORM) > $names.index(",
        f"{FIGURE1}::test_normalisation_before_sub_layers_is_drawn_there",
    ),
    Mistake(
        "figure 1 leads the memory into self-attention",
        "_read_sub_layer",
        "$keys_values.inputs[0] != $call.inputs[0]",
        "$keys_values.inputs[0] == $call.inputs[0]",
        f"{FIGURE1}::test_only_the_decoders_second_attention_reads_the_memory",
    ),
    Mistake(
        "a figure of the paper shows the layer below that of --layer",
        "plot._draw_figure",
        '$kinds["encoder"],',
        '$kinds["encoder"] - 1,',
        f"{PLOT}::test_a_figure_of_the_paper_has_the_words_of_the_sentence",
    ),
    Mistake(
        "a weight of 1 overflows its byte",
        "quantize",
        "np.clip(weights, 0, 1) * LEVELS",
        "np.clip(weights, 0, 1) * (LEVELS + 1)",
        f"{CONTENTS}::test_weights_come_back_to_half_a_level",
    ),
    Mistake(
        "weights are cut, not rounded",
        "quantize",
        "np.rint(",
        "np.floor(",
        f"{CONTENTS}::test_weights_come_back_to_half_a_level",
    ),
    Mistake(
        "a page has its heads in the place of its layers",
        "_plain",
        "quantize(getattr($value, kind))",
        "quantize(getattr($value, kind).swapaxes(0, 1))",
        f"{CONTENTS}::test_weights_come_back_to_half_a_level",
    ),
    Mistake(
        "a token can end the script of a page",
        "escaped_json",
        '$text.replace("<", "\\\\u003c")',
        "$text",
        f"{PAGE}::test_a_hostile_text_ends_no_script_and_opens_no_element",
    ),
    Mistake(
        "any script may run in a page",
        "content_policy",
        'f"script-src {_hash($script)}"',
        "\"script-src 'unsafe-inline'\"",
        f"{PAGE}::test_the_policy_lets_only_this_script_and_this_style_run",
    ),
)
