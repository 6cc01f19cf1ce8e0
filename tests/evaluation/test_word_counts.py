"""Words are counted in the lines of a file."""

import pathlib

from vaswani_jax.evaluation import word_counts


def test_words_of_a_file_are_counted_up_to_a_limit(
    tmp_path: pathlib.Path, monkeypatch
) -> None:
    file = tmp_path / "train.de"
    file.write_text("ein Hund\nein Haus ein\nzu viel\n")
    monkeypatch.setattr(word_counts, "MAX_TRAINING_LINES", 2)
    found = word_counts.count_file(str(file), tokenize=str.split)
    assert found.counts == {"ein": 3, "Hund": 1, "Haus": 1}
    assert found.origin == f"the first 2 lines of {file}"
