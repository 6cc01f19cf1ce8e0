"""Held-out text that is training text, and targets that are their sources."""

import pytest

from tests import settings
from tests.data import small_text
from vaswani_jax.data import overlap, prepared


def messages(caplog, train, *, valid, may_copy=False):
    caplog.set_level("INFO", "vaswani_jax")
    caplog.clear()
    watch = overlap.Overlap({"valid": valid})
    assert list(watch.watch(iter(train))) == train
    watch.log(may_copy=may_copy)
    return [(record.levelname, record.message) for record in caplog.records]


TRAIN = [(f"a {number}", f"b {number}") for number in range(1200)]
OTHER = [("c", f"d {number}") for number in range(1200)]


@pytest.mark.parametrize(
    ("count", "level"), [(0, None), (1, "INFO"), (120, "INFO"), (121, "WARNING")]
)
def test_held_out_pairs_that_are_trained_on_are_counted(caplog, count, level):
    valid = TRAIN[:count] + OTHER[count:]
    logged = messages(caplog, TRAIN, valid=valid)
    assert [kind for kind, _ in logged] == [level] * bool(count)
    note = f"{count} of 1,200 validation pairs are also training pairs"
    assert all(text.startswith(note) for _, text in logged)


def test_a_pair_counts_as_often_as_it_is_held_out_and_only_as_a_pair(caplog):
    # The source alone, the target alone, and nothing at all are no leak.
    train = [("a", "b"), ("c", "x"), ("y", "d"), ("", "")] * 2
    valid = [("a", "b"), ("a", "b"), ("c", "d"), ("", "")]
    [(level, text)] = messages(caplog, train, valid=valid)
    assert level == "WARNING"
    assert text.startswith("2 of 4 validation pairs are also training pairs: ")


@pytest.mark.parametrize(("num_copies", "is_logged"), [(2, False), (3, True)])
@pytest.mark.parametrize("may_copy", [False, True])
def test_targets_that_are_sources_are_warned_of(
    caplog, num_copies, is_logged, may_copy
):
    train = [("a", "a")] * num_copies + [("b", "c")] * (4 - num_copies) + [("", "")]
    logged = messages(caplog, train, valid=[("d", "e")], may_copy=may_copy)
    text = "3 of 5 training pairs have the same text as source and as target"
    assert logged == [("WARNING", text)] * (is_logged and not may_copy)


def warnings_of(caplog):
    return [record.message for record in caplog.records if record.levelname != "INFO"]


def test_preparing_warns_once_however_often_pairs_are_segmented(text, caplog):
    for ending in ("en", "de"):
        path = text / f"valid.{ending}"
        small_text.write_lines(path, small_text.read_lines(text / f"train.{ending}"))
    sampled = {"data.subword_dropout": 0.3, "data.subword_samples": 3}
    data = small_text.prepare(text, **sampled)
    assert warnings_of(caplog) == [
        # Two pairs have a side without a character.
        "118 of 120 validation pairs are also training pairs: scores on them say "
        "little about other text",
        # As the test text of `small_text` does.
        "3 of 4 test pairs have the same text as source and as target",
    ]
    assert data.counts["train"]["kept"] == 3 * data.counts["valid"]["kept"]


@pytest.mark.parametrize(
    ("source", "vocab_size"), [("copy", 57), ("reverse", 57), ("cldr", 200)]
)
def test_generated_text_is_held_out(tmp_path, caplog, source, vocab_size):
    sizes = {"data.num_train": 500, "data.num_valid": 50, "data.num_test": 50}
    caplog.set_level("INFO", "vaswani_jax")
    generated = settings.small_settings(
        **{"data.source": source, "data.source_locale": "en"}
        | {"data.target_locale": "de", "data.vocab_size": vocab_size}
        | sizes
    )
    prepared.open_or_prepare(generated, tmp_path / "data", rebuild=False)
    assert not [text for text in caplog.messages if "also training" in text]
    assert warnings_of(caplog) == []
