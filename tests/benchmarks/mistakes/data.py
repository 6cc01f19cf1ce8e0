"""Mistakes in reading, preparing and checking text."""

from tests.benchmarks.mistakes.mistake import Mistake

TRAINING_BATCHES = "tests/data/test_training_batches.py"
CLEANING = "tests/data/test_cleaning.py"
CLEANING_RULES = "tests/data/test_cleaning_rules.py"
TFDS = "tests/data/test_tfds.py"
TREEBANK = "tests/data/test_treebank.py"
LINEARIZATION = "tests/data/test_linearization.py"
TEXT_CHECKS = "tests/text_checks"

MISTAKES = (
    Mistake(
        "a seed's subword dropout is that of the first",
        "depends_on_seed",
        "$data.subword_dropout > 0",
        "False",
        "tests/data/test_prepared.py::test_data_depends_on_the_seed_or_is_shared",
    ),
    Mistake(
        "WMT14 the other way round",
        "data.tfds",
        "for $locale in ($data.source_locale, $data.target_locale)",
        "for $locale in ($data.target_locale, $data.source_locale)",
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
        "tests/data/test_run_vocabulary.py::test_the_vocabulary_learns_from_lines_spread_over_the_text",
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
        f"{TRAINING_BATCHES}::test_a_stage_goes_on_where_the_epoch_before_it_would_have_ended",
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
        f"{TRAINING_BATCHES}::test_every_epoch_has_the_exact_share_of_each_corpus",
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
        "the check counts lines over all files",
        "sources.locate",
        "$number - $start",
        "$number",
        "tests/data/test_sources.py::test_pairs_in_several_files_are_located_in_both",
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
)
