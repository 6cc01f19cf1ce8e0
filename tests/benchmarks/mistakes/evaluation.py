"""Mistakes in scores and comparisons."""

from tests.benchmarks.mistakes.mistake import Mistake

BLEU = "tests/evaluation/test_bleu.py"
MULTI_BLEU = "tests/evaluation/test_multi_bleu.py"
SIGNIFICANCE = "tests/evaluation/test_significance.py"
RANDOMIZATION = "tests/evaluation/test_randomization.py"
BRACKETING = "tests/evaluation/test_bracketing.py"

MISTAKES = (
    Mistake(
        "Moses' tokens are not escaped",
        "bleu._tokenize_line",
        "escape=True",
        "escape=False",
        f"{BLEU}::test_moses_tokenize_escapes_as_tokenizer_perl_does",
    ),
    Mistake(
        "compounds are split in the outputs alone",
        "evaluation.bleu",
        "references = [split_compounds($line) for $line in references]",
        "references = list(references)",
        f"{BLEU}::test_paper_bleu_is_the_formula_over_tokens_written_by_hand",
    ),
    Mistake(
        "quotes are those of ASCII in the references alone",
        "evaluation.bleu",
        "outputs = ascii_punctuation(outputs)",
        "outputs = list(outputs)",
        f"{BLEU}::test_quotes_are_ascii_s_in_one_score_alone",
    ),
    Mistake(
        "no brevity penalty",
        "multi_bleu",
        "min(0.0, 1 - $bleu_score.ref_len / $bleu_score.sys_len)",
        "0.0",
        f"{MULTI_BLEU}::test_multi_bleu_equals_the_formula",
    ),
    Mistake(
        "a system differs from itself",
        "significance.compare",
        "max($p_value, 2.0 ** (1 - $num_lines))",
        "$p_value",
        f"{SIGNIFICANCE}::test_a_system_and_itself_are_no_different",
    ),
    Mistake(
        "every p-value is multiplied by the number of all",
        "significance.holm",
        "(len($order) - $rank) * $p_values[$index]",
        "len($order) * $p_values[$index]",
        f"{SIGNIFICANCE}::test_holm_s_correction_by_hand",
    ),
    Mistake(
        "a coin for each run of a line",
        "randomization.compute_p_value",
        "$changes = $exchanges @ $line_changes",
        "$changes = np.hstack([generator.permutation($exchanges) @ part "
        "for part in np.hsplit($line_changes, num_runs)])",
        f"{RANDOMIZATION}::test_repeated_runs_do_not_count_as_more_lines",
    ),
    Mistake(
        "outputs are copied, not exchanged",
        "randomization.compute_p_value",
        "($first + $changes, $second - $changes)",
        "($first + $changes, $second)",
        f"{RANDOMIZATION}::test_p_values_are_those_of_the_enumeration",
    ),
    Mistake(
        "all lines of a run are exchanged together",
        "randomization.compute_p_value",
        "$generator.random(($D, $L, 2))",
        "np.repeat($generator.random(($D, 1, 2)), $L, axis=1)",
        f"{RANDOMIZATION}::test_p_values_are_those_of_the_enumeration",
    ),
    Mistake(
        "equal systems differ by chance",
        "randomization.compute_p_value",
        ">= $observed - TIES",
        "> $observed + TIES",
        f"{RANDOMIZATION}::test_the_same_runs_are_no_difference_in_any_order",
    ),
    Mistake(
        "a deviation of seeds as if there were no others",
        "Spread.deviation",
        "(len($self.values) - 1)",
        "len($self.values)",
        "tests/evaluation/test_spread.py::test_mean_and_deviation_are_numpys",
    ),
    Mistake(
        "more errors are better",
        "MetricComparison.better",
        "($difference.value > 0) != $self.lower_is_better",
        "$difference.value > 0",
        f"{SIGNIFICANCE}"
        "::test_a_clearly_worse_system_is_different_whatever_the_direction",
    ),
    Mistake(
        "constituents match whatever their labels",
        "bracketing._read_side",
        "_Constituent($start, len($words), $label)",
        '_Constituent($start, len($words), "")',
        f"{BRACKETING}::test_precision_and_recall_are_of_the_test_and_of_the_reference",
    ),
    Mistake(
        "punctuation has its place in constituents",
        "bracketing.score",
        "$leaf.label not in $parameters.deleted_labels for $leaf in $gold_words",
        "True for $leaf in $gold_words",
        f"{BRACKETING}::test_what_counts_and_what_matches",
    ),
    Mistake(
        "ROOT is a constituent",
        "bracketing.score",
        "_strip_root($tree)",
        "[$tree]",
        f"{BRACKETING}::test_what_counts_and_what_matches",
    ),
    Mistake(
        "doubled constituents match as one",
        "bracketing._compare",
        "$gold.constituents & $test.constituents",
        "collections.Counter({*$gold.constituents} & {*$test.constituents})",
        f"{BRACKETING}::test_what_counts_and_what_matches",
    ),
    Mistake(
        "the recall of constituents is the mean of the sentences",
        "bracketing._counts",
        "matched=sum($sentence.matched.total() for $sentence in $sentences)",
        "matched=round(sum($sentence.gold.total() for $sentence in $sentences) * "
        "sum($sentence.matched.total() / $sentence.gold.total() "
        "for $sentence in $sentences) / len($sentences))",
        f"{BRACKETING}::test_figures_are_of_sums_not_means",
    ),
    Mistake(
        "EVALB's errors among the constituents' sums",
        "bracketing.score_as_evalb",
        "elif $difference := _first_difference($gold_side.words, $test_side.words)",
        "elif $difference := len($gold_side.words) != len($test_side.words)",
        f"{BRACKETING}::test_the_sample_of_evalb_has_its_published_figures",
    ),
    Mistake(
        "outputs of an older model are compared",
        "kept_outputs.read",
        "$current_steps and not $current_steps.may_equal($recorded_steps)",
        "False",
        "tests/test_comparer.py::test_kept_outputs_of_something_else_are_not_compared",
    ),
)
