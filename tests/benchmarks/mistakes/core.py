"""Mistakes in what all programs share."""

from tests.benchmarks.mistakes.mistake import Mistake

PROGRAMS = "tests/core/test_kept_programs.py"

MISTAKES = (
    Mistake(
        "the search that began last is read first",
        "side_by_side.compute",
        "yield results.popleft().result()",
        "yield results.pop().result()",
        "tests/core/test_side_by_side.py::test_results_come_in_order_and_are_computed_at_once",
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
        "a kept program is known without the settings that it reads",
        "kept_programs.key",
        "($identity.name, describe($identity.closure))",
        "$identity.name",
        f"{PROGRAMS}::test_another_closure_shape_type_or_name_is_another_program",
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
)
