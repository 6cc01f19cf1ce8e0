"""Mistakes in search and translation."""

from tests.benchmarks.mistakes.mistake import Mistake

MARIAN = "tests/oracles/test_marian.py"
BEAM = "tests/inference/test_beam_search.py"
BRACKETS = "tests/inference/test_brackets.py"
BANKS = "tests/inference/test_banks.py"
GLOSSARY = "tests/inference/test_glossary.py"
PHRASES = "tests/inference/test_phrases.py"
PROGRAMS = "tests/core/test_kept_programs.py"

MISTAKES = (
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
        "a kept search is known without its number of hypotheses",
        "_search_on_devices",
        "($settings, $models, $vocab_size, $n_best)",
        "($settings, $models, $vocab_size)",
        f"{PROGRAMS}::test_programs_that_differ_are_kept_apart",
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
        "RequiredPhrases._extend",
        "$counts + ($is_pending & $breaks) + ($is_whole & ~$are_words)",
        "$counts + $is_pending + ($is_whole & ~$are_words)",
        f"{BANKS}::test_a_wide_beam_finds_the_best_of_all_outputs_with_the_phrases",
    ),
    Mistake(
        "all banks are one, of the likeliest hypotheses",
        "RequiredPhrases.best_extensions",
        "_allocate(self._bank($extended), $log_probs)",
        "_allocate(0 * self._bank($extended), $log_probs)",
        f"{BANKS}::test_every_output_begins_with_its_prefix_and_has_all_its_phrases",
    ),
    Mistake(
        "hypotheses keep the phrases of those that were in their places",
        "beam_search._choose",
        "jnp.take_along_axis($extensions.phrase_counts, $indices[:, :, None], axis=1)",
        "$extensions.phrase_counts[:, : $indices.shape[1]]",
        f"{BANKS}::test_a_narrow_beam_finds_what_a_plain_search_with_banks_finds",
    ),
    Mistake(
        "a term is found inside a longer word",
        "Glossary._find_at",
        "$end > len($line) or ($has_spaces and is_inside_word($line, $end))",
        "$end > len($line)",
        f"{GLOSSARY}::test_terms_are_those_that_a_pattern_finds",
    ),
    Mistake(
        "what is listed and in the glossary is needed twice",
        "PhraseFinder._add_unlisted",
        "$num_listed[$phrase.text] >= 0",
        "False",
        f"{PHRASES}::test_what_is_listed_and_in_the_glossary_is_needed_once",
    ),
    Mistake(
        "a repeated phrase is needed once",
        "pad_phrases",
        "= $count, $is_word",
        "= 1, $is_word",
        "tests/inference/test_phrase_rows.py::test_phrases_are_padded_with_their_counts",
    ),
    Mistake(
        "a part of a word is taken for a phrase",
        "phrases.Phrase.count",
        "$number += not $is_joined",
        "$number += 1",
        f"{PHRASES}::test_occurrences_are_whole_words",
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
        "tests/data/test_synthetic_corpus.py::"
        "test_a_damaged_shard_is_made_again_with_a_warning",
    ),
)
