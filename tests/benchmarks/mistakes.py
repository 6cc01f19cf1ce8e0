"""The mistakes that `tests.benchmarks.planted_mistakes` plants, and what must notice.

A `location` is the dotted end of the name of a function, class, constant or module. In
`sound` and `mistaken` spaces do not count, and $name stands for any identifier.
"""

import dataclasses

TORCH = "tests/oracles/test_torch.py"
MARIAN = "tests/oracles/test_marian.py"
IMPORT = "tests/oracles/test_marian_import.py"
TRANSFORMER = "tests/model/test_transformer.py"
LOSS = "tests/training/test_loss.py"
STEP = "tests/training/test_step.py"
BEAM = "tests/inference/test_beam_search.py"
MIXED = "tests/data/test_mixed_batches.py"
CLEANING = "tests/data/test_cleaning.py"
CLEANING_RULES = "tests/data/test_cleaning_rules.py"
BRACKETS = "tests/inference/test_brackets.py"
BANKS = "tests/inference/test_banks.py"
PHRASES = "tests/inference/test_phrases.py"
PRESETS = "tests/paper/test_presets.py"
PRINTED = "tests/paper/test_printed.py"
PARAMETERS = "tests/model/test_cost.py"
FLOPS = "tests/model/test_cost.py"
LAYERS = "tests/paper/test_table1.py"
BLEU = "tests/evaluation/test_bleu.py"
MULTI_BLEU = "tests/evaluation/test_multi_bleu.py"
SIGNIFICANCE = "tests/evaluation/test_significance.py"
SEEDS_SIGNIFICANCE = "tests/evaluation/test_seeds_significance.py"
TFDS = "tests/data/test_tfds.py"
TREEBANK = "tests/data/test_treebank.py"
LINEARIZATION = "tests/data/test_linearization.py"
BRACKETING = "tests/evaluation/test_bracketing.py"
CONTENTS = "tests/pages/test_contents.py"
PAGE = "tests/pages/test_html.py"
LAYER = "tests/plots/test_attention_layer.py"
LINES = "tests/plots/test_attention_lines.py"
FIGURE1 = "tests/plots/test_architecture.py"
PLOT = "tests/programs/test_plot.py"
HEADS = "tests/paper/test_attention_figures.py"
PROGRAMS = "tests/core/test_kept_programs.py"
TEXT_CHECKS = "tests/text_checks"


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A change of the code at a place, and the tests that must fail after it."""

    name: str
    location: str
    sound: str
    mistaken: str
    proof: str


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
        "smoothing over the V - 1 others where over all was asked",
        "smoothed_cross_entropy",
        "$spread = $total_logit / V",
        "$spread = ($total_logit - correct_logit) / (V - 1)",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "padding is predicted, too",
        "smoothed_cross_entropy",
        "$target_out != $types.PAD_ID",
        "$target_out >= $types.PAD_ID",
        f"{TORCH}::test_loss_and_every_gradient_are_torchs",
    ),
    Mistake(
        "Adam's beta_2 is the usual 0.999",
        "adam",
        "b2=$settings.$optimizer.beta2",
        "b2=0.999",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "Adam's epsilon is 1e-6",
        "adam",
        "eps=$settings.$optimizer.epsilon",
        "eps=1e-6",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the schedule counts from 0",
        "warmup_inverse_sqrt",
        "jnp.asarray($step, jnp.float32) + 1",
        "jnp.asarray($step, jnp.float32)",
        f"{TORCH}::test_twenty_updates_are_those_of_torchs_adam",
    ),
    Mistake(
        "the warm-up grows with warmup_steps^-1",
        "warmup_inverse_sqrt",
        "$step_num * warmup_steps**-1.5\n",
        "$step_num * warmup_steps**-1.0\n",
        "tests/training/test_optimizer.py",
    ),
    Mistake(
        "the doctest of the schedule is of another d_model",
        "warmup_inverse_sqrt",
        "warmup_inverse_sqrt(d_model=512",
        "warmup_inverse_sqrt(d_model=1024",
        "vaswani_jax/training/optimizer.py",
    ),
    Mistake(
        "devices add up their sums but not their gradients' parts",
        "step.train_step",
        "$gradients, $sums = parallel.sum_over_devices($parts)",
        "$gradients, $sums = $parts[0], parallel.sum_over_devices($parts[1])",
        f"{STEP}::test_three_updates_on_eight_devices_are_adam_in_numpy",
    ),
    Mistake(
        "the V - 1 others share between V",
        "smoothed_cross_entropy",
        "- $chosen) / (V - 1)",
        "- $chosen) / V",
        f"{LOSS}::test_each_form_of_smoothing_is_that_of_its_definition",
    ),
    Mistake(
        "the form without padding gives padding its part",
        "smoothed_cross_entropy",
        "- $chosen - $padding) / (V - 2)",
        "- $chosen) / (V - 1)",
        f"{LOSS}::test_each_form_of_smoothing_is_that_of_its_definition",
    ),
    Mistake(
        "perplexity of the smoothed loss",
        "per_token",
        "np.exp(np.asarray($sums.nll) / $tokens)",
        "np.exp(np.asarray($sums.loss) / $tokens)",
        f"{LOSS}::test_means_are_over_tokens_and_perplexity_is_that_of_the_plain_likelihood",
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
        "a search that ends with the first finished hypotheses",
        "beam_search._is_done",
        "$settled = $scores >= $reachable",
        "$settled = $scores > -jnp.inf",
        f"{MARIAN}::test_marian_mt_finds_our_translations_with_our_scores",
    ),
    Mistake(
        "lp(Y) begins at (6 + |Y|) / 6",
        "beam_search.length_penalty",
        "(5.0 + $counted) / 6.0",
        "(6.0 + $counted) / 6.0",
        f"{MARIAN}::test_marian_mt_finds_nothing_better_by_the_papers_penalty",
    ),
    Mistake(
        "a beam that extends its best hypothesis alone",
        "beam_search.advance",
        "$origin = jnp.take_along_axis($extended.origin,",
        "$origin = 0 * jnp.take_along_axis($extended.origin,",
        f"{BEAM}::test_a_model_s_search_finds_what_full_passes_find",
    ),
    Mistake(
        "a tree has one word too many",
        "TreeGrammar._legal_symbols",
        "$words_left = self.num_words[$rows][:, None] -",
        "$words_left = 1 + self.num_words[$rows][:, None] -",
        f"{BRACKETS}::test_every_output_is_a_tree_over_its_sentences_words",
    ),
    Mistake(
        "a constituent closes with any label",
        "TreeGrammar._legal_symbols",
        "$token == $label + L",
        "($token >= $label * 0 + 4 + L) & ($token < 4 + 2 * L)",
        f"{BRACKETS}::test_every_output_is_a_tree_over_its_sentences_words",
    ),
    Mistake(
        "a tree ends before its constituents close",
        "TreeGrammar._legal_symbols",
        "$may_end = ($depth == 0) & ($words_left == 0)",
        "$may_end = $words_left == 0",
        f"{BRACKETS}::test_every_output_is_a_tree_over_its_sentences_words",
    ),
    Mistake(
        "the last sentences of a batch have the room of the first",
        "TreeGrammar._legal_symbols",
        "self.max_lengths[$rows]",
        "self.max_lengths[: $rows.shape[0]]",
        f"{BRACKETS}::test_every_output_is_a_tree_over_its_sentences_words",
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
    Mistake(
        "a layer normalisation is not counted",
        "count_by_matrix",
        '"layer normalisation": (attentions + layers) *',
        '"layer normalisation": (attentions + encoder) *',
        f"{PARAMETERS}::test_the_count_of_every_row_is_that_of_the_model_it_builds",
    ),
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
    Mistake(
        "training on seven GPUs",
        "GPUS",
        "GPUS = 8",
        "GPUS = 7",
        f"{PRINTED}::test_the_printed_cost_is_hours_of_hardware",
    ),
    Mistake(
        "operations without the softmax's matrix",
        "forward_flops",
        "$logits = $target * $model.d_model * $vocab_size",
        "$logits = $target * $model.d_model",
        f"{FLOPS}::test_the_formula_counts_what_xla_counts",
    ),
    Mistake(
        "table 1's recurrence has n^2 d operations",
        "paper.table1",
        '"Recurrent": $n * $d * $d',
        '"Recurrent": $n * $n * $d',
        LAYERS,
    ),
    Mistake(
        "the figure of the positions has sines alone",
        "sinusoids",
        "[jnp.sin($angles), jnp.cos($angles)]",
        "[jnp.sin($angles), jnp.sin($angles)]",
        "tests/paper/test_figures.py",
    ),
    Mistake(
        "a conclusion holds whatever the difference",
        "paper.small_table3",
        '"holds" if $difference > 0 and not $same else "does not hold"',
        '"holds"',
        "tests/paper/test_small_table3.py",
    ),
    Mistake(
        "the search that began last is read first",
        "side_by_side.compute",
        "yield results.popleft().result()",
        "yield results.pop().result()",
        "tests/core/test_side_by_side.py::test_results_come_in_order_and_are_computed_at_once",
    ),
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
        "min(0.0, 1 - $reference_length / $output_length)",
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
        "the runs of a system are not told apart from another's",
        "seeds_significance.compute_p_value",
        "$scores[:, :$num_first].mean(1), $scores[:, $num_first:].mean(1)",
        "$scores[:, :1].mean(1), $scores[:, 1:].mean(1)",
        f"{SEEDS_SIGNIFICANCE}::test_p_values_are_those_of_the_enumeration",
    ),
    Mistake(
        "all lines of a run are exchanged together",
        "seeds_significance.compute_p_value",
        "$generator.random(($D, $L, $R)).argsort(-1)",
        "np.repeat($generator.random(($D, 1, $R)).argsort(-1), $L, axis=1)",
        f"{SEEDS_SIGNIFICANCE}::test_p_values_are_those_of_the_enumeration",
    ),
    Mistake(
        "equal systems differ by chance",
        "seeds_significance.compute_p_value",
        ">= $observed - TIES",
        "> $observed + TIES",
        f"{SEEDS_SIGNIFICANCE}::test_the_same_runs_are_no_difference_in_any_order",
    ),
    Mistake(
        "a deviation of seeds as if there were no others",
        "Spread.deviation",
        "(len($self.values) - 1)",
        "len($self.values)",
        "tests/evaluation/test_spread.py::test_mean_and_deviation_are_numpys",
    ),
    Mistake(
        "a seed's subword dropout is that of the first",
        "depends_on_seed",
        "$data.subword_dropout > 0",
        "False",
        "tests/data/test_prepared.py::test_data_depends_on_the_seed_or_is_shared",
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
        "outputs of an older model are compared",
        "_kept_outputs",
        "$is_current = not $steps or $steps[-1] == $step",
        "$is_current = True",
        "tests/test_comparer.py::test_kept_outputs_of_something_else_are_not_compared",
    ),
    Mistake(
        "WMT14 the other way round",
        "data.tfds",
        "$record[$data.source_locale]), $line($record[$data.target_locale])",
        "$record[$data.target_locale]), $line($record[$data.source_locale])",
        f"{TFDS}::test_the_builders_pairs_are_those_of_the_archives",
    ),
    Mistake(
        "the last line of an archive's file is lost",
        "data.tfds",
        'yield $line.decode("utf-8")',
        'if $line.endswith(b"\\n"): yield $line.decode("utf-8")',
        f"{TFDS}::test_reading_line_by_line_changes_no_record",
    ),
    Mistake(
        "the vocabulary learns from the head of the text",
        "sources._spread_indices",
        "(-(-$number * $total // $size) for $number in range($size))",
        "iter(range($size))",
        "tests/data/test_prepare.py::test_the_vocabulary_learns_from_lines_spread_over_the_text",
    ),
    Mistake(
        "identical pairs are compared within a block alone",
        "PairSet.add",
        "$is_first &= $run[$indices] != $hashes",
        "$is_first &= True",
        f"{CLEANING}::test_of_duplicates_the_first_is_kept",
    ),
    Mistake(
        "a rule counts a pair and keeps it",
        "Cleaner._examine_chunk",
        "removals.add(Example(corpus, first + n + 1, reason, chunk[n]))"
        "is_kept[first + n] = False",
        "removals.add(Example(corpus, first + n + 1, reason, chunk[n]))",
        f"{CLEANING_RULES}::test_a_rule_leaves_out_the_pairs_that_break_it",
    ),
    Mistake(
        "a feature counts once, however often a line has it",
        "_Model._scores",
        "np.log1p(np.diff($starts, append=len($keys)), dtype=np.float32)",
        "np.log1p(np.ones(len($starts)), dtype=np.float32)",
        "tests/data/test_language_identification.py::"
        "test_many_lines_at_a_time_get_the_probabilities_of_py3langid",
    ),
    Mistake(
        "a line without a word of evidence is in another language",
        "language_identification.judge",
        'len($letters.encode(errors="surrogatepass")) < MIN_BYTES',
        "False",
        "tests/data/test_language_identification.py::"
        "test_a_short_line_is_in_the_language_that_it_should_be_in",
    ),
    Mistake(
        "a stage begins the sequences of its corpora anew",
        "Draws.__init__",
        "$start + $num_epochs * $quota",
        "0 * $start * $num_epochs * $quota",
        f"{MIXED}::test_a_stage_goes_on_where_the_epoch_before_it_would_have_ended",
    ),
    Mistake(
        "all passes over a corpus have the same order",
        "UnitSequence._order",
        "[*self._seed, $kind, $number, PASS]",
        "[*self._seed, $kind, 0, PASS]",
        "tests/data/test_sequences.py::"
        "test_passes_have_orders_of_their_own_that_the_seed_decides",
    ),
    Mistake(
        "an epoch begins its part of a corpus where the one before did",
        "Draws.epoch",
        "$start + $number * $quota",
        "$start + 0 * $number * $quota",
        f"{MIXED}::test_every_epoch_has_the_exact_share_of_each_corpus",
    ),
    Mistake(
        "a run may change stages that it has used",
        "may_replace_stages",
        "$stage.batch < $num_batches",
        "$stage.batch > $num_batches",
        "tests/core/test_corpora_stages.py::"
        "test_stages_that_a_run_has_not_reached_may_change",
    ),
    Mistake(
        "every copy of a corpus has the same noise",
        "TrainingText._noisy",
        "$key = ($self._seed, $part.name, $copy)",
        "$key = ($self._seed, $part.name, 0)",
        "tests/data/test_noise.py::"
        "test_each_field_of_a_corpus_changes_what_is_prepared",
    ),
    Mistake(
        "a root is a constituent",
        "treebank.is_root",
        "$tree.label in ROOTS",
        '$tree.label == ""',
        f"{TREEBANK}::test_any_tree_is_cleaned_as_by_recursion",
    ),
    Mistake(
        "traces are words",
        "treebank._clean_parts",
        "elif $tree.label != EMPTY",
        "else",
        f"{TREEBANK}::test_any_tree_is_cleaned_as_by_recursion",
    ),
    Mistake(
        "function tags of labels stay",
        "treebank.category",
        '$re.split("[-=]", $label, maxsplit=1)[0]',
        '""',
        f"{TREEBANK}::test_the_penn_treebanks_own_layout_becomes_constituents",
    ),
    Mistake(
        "closing symbols have no label",
        "linearize",
        'f"){$part.label}"',
        '")"',
        f"{LINEARIZATION}::test_any_tree_comes_back_from_its_symbols",
    ),
    Mistake(
        "words that are left stand before a later word",
        "build_tree",
        "$num_words += 1 $last = None",
        "$num_words += 1",
        f"{LINEARIZATION}::test_long_symbols_become_trees_over_the_words",
    ),
    Mistake(
        "a tree has one word less than the sentence",
        "build_tree",
        "$words[$num_words:]",
        "$words[$num_words + 1 :]",
        f"{LINEARIZATION}::test_any_symbols_become_a_tree_over_the_words",
    ),
    Mistake(
        "the last word has no symbol",
        "build_tree",
        "elif $num_words < len($words)",
        "elif $num_words + 1 < len($words)",
        f"{LINEARIZATION}::test_any_tree_comes_back_from_its_symbols",
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
        "$leaf.label not in $parameters.deleted for $leaf in $gold_words",
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
        "elif _first_difference($gold_side.words, $test_side.words)",
        "elif len($gold_side.words) != len($test_side.words)",
        f"{BRACKETING}::test_the_sample_of_evalb_has_its_published_figures",
    ),
    Mistake(
        "a figure shows the layer below",
        "read_layer",
        "$attention.encoder[$layer]",
        "$attention.encoder[$layer - 1]",
        f"{LAYER}::test_subwords_have_the_weights_of_their_layer",
    ),
    Mistake(
        "a figure of the paper shows the layer below that of --layer",
        "plot._draw_figure",
        '$kinds["encoder"],',
        '$kinds["encoder"] - 1,',
        f"{PLOT}::test_a_figure_of_the_paper_has_the_words_of_the_sentence",
    ),
    Mistake(
        "the report judges figures 3 to 5 by layer 4 of 6",
        "attention_figures.read_heads",
        "$alignment.default_layer(len($attention.encoder))",
        "$alignment.default_layer(len($attention.encoder)) - 1",
        f"{HEADS}::test_the_heads_are_those_of_layer_5_of_6",
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
    Mistake(
        "a kept program is known without the settings that it reads",
        "kept_programs.key",
        "($identity.name, describe($identity.closure))",
        "$identity.name",
        f"{PROGRAMS}::test_another_closure_shape_type_or_name_is_another_program",
    ),
    Mistake(
        "a kept search is known without its number of hypotheses",
        "_search_on_devices",
        "($settings, $models, $vocab_size, $n_best)",
        "($settings, $models, $vocab_size)",
        f"{PROGRAMS}::test_programs_that_differ_are_kept_apart",
    ),
    Mistake(
        "a kept program outlives an edit of its source",
        "kept_programs.key",
        '"source": _sources_at_start(),',
        "",
        f"{PROGRAMS}::test_whatever_a_program_depends_on_belongs_to_its_key",
    ),
    Mistake(
        "a kept program is read without a look at its checksum",
        "kept_programs._read",
        "!= MAGIC + _checksum($digest, $program)",
        "[:1] != MAGIC[:1]",
        f"{PROGRAMS}::test_a_damaged_file_is_made_again",
    ),
    Mistake(
        "an output ends without its phrases",
        "RequiredPhrases.best_extensions",
        "jnp.where($is_forbidden, -jnp.inf, $allowed_logits)",
        "$allowed_logits",
        f"{BANKS}::test_a_wide_beam_finds_the_best_of_all_outputs_with_the_phrases",
    ),
    Mistake(
        "a word may go on after a phrase",
        "RequiredPhrases.progress",
        "~$are_words | $next_breaks[:, :, None]",
        "~$are_words | True",
        f"{BANKS}::test_a_wide_beam_finds_the_best_of_all_outputs_with_the_phrases",
    ),
    Mistake(
        "all banks are one, of the likeliest hypotheses",
        "RequiredPhrases.best_extensions",
        "_allocate(self._bank($origin, $token, $progress), $log_probs)",
        "_allocate(0 * self._bank($origin, $token, $progress), $log_probs)",
        f"{BANKS}::test_every_output_begins_with_its_prefix_and_has_all_its_phrases",
    ),
    Mistake(
        "a repeated phrase is needed once",
        "pad_phrases",
        "= $count, $is_word",
        "= 1, $is_word",
        f"{PHRASES}::test_phrases_are_padded_with_their_counts",
    ),
    Mistake(
        "a part of a word is taken for a phrase",
        "phrases.Phrase.count",
        "$number += not $is_joined",
        "$number += 1",
        f"{PHRASES}::test_occurrences_are_whole_words",
    ),
    Mistake(
        "a column of tab-separated lines is the one before",
        "columns._read_tsv",
        "fields[$column - 1]",
        "fields[$column - 2]",
        "tests/data/test_columns.py::test_every_kind_of_file_has_the_same_text",
    ),
    Mistake(
        "the last line of a shard is lost if no line feed ends it",
        "text_files._split_lines",
        "while $line := $stream.readline(MAX_LINE_BYTES):",
        "while ($line := $stream.readline(MAX_LINE_BYTES)).endswith(b'\\n'):",
        "tests/data/test_text_files.py::test_lines_come_back_as_they_were_written",
    ),
    Mistake(
        "lines without a partner at the end of a shard are dropped",
        "sources._zip_shards",
        "itertools.zip_longest(",
        "zip(",
        "tests/data/test_sources.py::"
        "test_sides_of_unequal_length_are_refused_with_both_counts",
    ),
    Mistake(
        "a part of a stream of Arrow is taken for all of it",
        "arrow_files._batches",
        "$file.read() != END_OF_STREAM",
        "$file.read() == b''",
        "tests/data/test_arrow_files.py::"
        "test_a_stream_that_was_cut_between_its_batches_is_refused",
    ),
    Mistake(
        "pairs that rounding leaves over are in no epoch",
        "mixture.divide_proportionally",
        "[: $total - sum($parts)]",
        "[:0]",
        "tests/data/test_mixture.py::"
        "test_parts_differ_from_their_shares_by_less_than_one",
    ),
    Mistake(
        "noise of synthetic sources is numbered within their shard",
        "back_translation._add_noise",
        "start=$first_line",
        "start=1",
        "tests/inference/test_back_translation.py::"
        "test_samples_and_noise_depend_on_the_line_of_the_whole_text",
    ),
    Mistake(
        "a damaged shard of synthetic pairs counts as written",
        "SyntheticCorpus.is_written",
        "$damage := files.describe_difference($digests, self.directory)",
        "$damage := ''",
        "tests/inference/test_synthetic_corpus.py::"
        "test_a_damaged_shard_is_made_again_with_a_warning",
    ),
    Mistake(
        "the check of overlap compares sources alone",
        "HeldOutSearch._compare",
        "_shared(held_out.shingles[1], $target) >= MIN_SHARED",
        "_shared(held_out.shingles[1], $target) >= 0",
        f"{TEXT_CHECKS}/test_held_out.py::"
        "test_nearly_copied_pairs_are_found_by_both_sides",
    ),
    Mistake(
        "the check of alignment suspects only blocks far below chance",
        "alignment.judge",
        "$limit = 0.5 + (1 - SUSPECTED_SHARE)",
        "$limit = 0.5 - (1 - SUSPECTED_SHARE)",
        f"{TEXT_CHECKS}/test_alignment.py::"
        "test_shuffled_lines_are_found_without_a_shift",
    ),
    Mistake(
        "the check of alignment learns from the pairs that it judges",
        "_Comparison._associations",
        "self._half != half",
        "self._half == half",
        f"{TEXT_CHECKS}/test_alignment.py",
    ),
    Mistake(
        "the check of languages ignores less than a fifth of the lines",
        "side_languages.LINES",
        '"minor": 0.02',
        '"minor": 0.2',
        f"{TEXT_CHECKS}/test_side_languages.py::"
        "test_scattered_lines_of_another_language_are_counted",
    ),
    Mistake(
        "the check of prepared data reads all copies",
        "reading._of_prepared",
        "$size // $parts[name].num_copies",
        "$size",
        f"{TEXT_CHECKS}/test_checks.py::"
        "test_of_prepared_data_only_the_first_copy_is_checked",
    ),
    Mistake(
        "the check counts lines over all files",
        "sources.locate",
        "$number - $start",
        "$number",
        "tests/data/test_sources.py::test_pairs_in_several_files_are_located_in_both",
    ),
)
