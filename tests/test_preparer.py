"""Preparing from Python: the data, and what each corpus gives to an epoch."""

import pathlib

import pytest

import vaswani_jax
from tests import interpreter, settings
from vaswani_jax.core import config, files


def write_corpora(directory: pathlib.Path) -> None:
    """Write corpora of 6 and 2 pairs, whose lines have as many letters as words."""
    directory.mkdir()
    for name, count in {"large": 6, "small": 2, "valid": 1}.items():
        for side, letter in {"source": "a", "target": "b"}.items():
            lines = [" ".join([letter] * length) for length in range(1, count + 1)]
            (directory / f"{name}.{side}").write_text("\n".join(lines) + "\n")


def settings_of(directory: pathlib.Path, **changes: object) -> config.Config:
    corpora = [
        {"name": name, "source": f"{name}.source", "target": f"{name}.target"}
        for name in ("large", "small")
    ]
    values = {
        "data.source": "text",
        "data.text_directory": str(directory),
        "data.vocab_size": 9,
        "data.corpora": [corpora[0] | {"weight": 1}, corpora[1] | {"weight": 3}],
        "data.epoch_pairs": 16,
        "data.valid_source": "valid.source",
        "data.valid_target": "valid.target",
        "data.test_source": "",
        "data.test_target": "",
    }
    return settings.small_settings(**(values | changes))


def test_an_epoch_has_the_share_of_each_corpus(tmp_path: pathlib.Path) -> None:
    write_corpora(tmp_path / "text")
    stages = [{"batch": 5, "weights": {"small": 1}}]
    small = settings_of(tmp_path / "text", **{"data.stages": stages})
    preparation = vaswani_jax.prepare(small, tmp_path / "run")
    assert preparation.directory == tmp_path / "run/data"
    assert preparation.counts["train"] == {"kept": 8, "empty": 0, "too_long": 0}
    assert not preparation.cleaning
    first, second = preparation.epochs
    assert (first.first_batch, second.first_batch) == (0, 5)
    assert [(each.pairs, each.share) for each in first.corpora] == [
        (4, 0.25),
        (12, 0.75),
    ]
    # 4 of 6 pairs are two thirds of a pass, 12 of 2 are six.
    assert [each.passes for each in first.corpora] == pytest.approx([2 / 3, 6])
    assert [each.pairs for each in second.corpora] == [0, 16]
    # The vocabulary has each word as a subword: (1 + 2) / 2 of a line, and an end mark.
    assert second.corpora[1].source_tokens == pytest.approx(16 * 2.5)
    assert "an epoch from batch 5 on: 16 pairs" in preparation.format_epochs()


def test_training_takes_the_prepared_data_as_it_is(tmp_path: pathlib.Path) -> None:
    write_corpora(tmp_path / "text")
    small = settings_of(tmp_path / "text")
    data = vaswani_jax.prepare(small, tmp_path / "run").data
    # Other weights need no other data, another vocabulary does.
    again = settings_of(tmp_path / "text", **{"data.epoch_pairs": 4})
    assert vaswani_jax.prepare(again, tmp_path / "run").data.manifest == data.manifest
    other = settings_of(tmp_path / "text", **{"data.vocab_size": 8})
    with pytest.raises(ValueError, match="vocab_size"):
        vaswani_jax.prepare(other, tmp_path / "run")
    rebuilt = vaswani_jax.prepare(other, tmp_path / "run", rebuild_data=True)
    assert rebuilt.vocabulary.fingerprint != data.vocabulary.fingerprint


def test_data_of_a_run_that_is_training_is_opened_and_not_replaced(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings()
    data = vaswani_jax.prepare(small, tmp_path / "run").data

    def contents() -> dict[str, tuple[bytes, int]]:
        return {
            path.name: (path.read_bytes(), path.stat().st_mtime_ns)
            for path in data.directory.iterdir()
        }

    files_before = contents()
    for name, rebuild in (("run", True), ("new", False)):
        with (
            files.held(tmp_path / name),
            pytest.raises(ValueError, match="is in use by process"),
        ):
            vaswani_jax.prepare(small, tmp_path / name, rebuild_data=rebuild)
    assert contents() == files_before
    assert not (tmp_path / "new/data").exists()
    with files.held(tmp_path / "run"):
        opened = vaswani_jax.prepare(small, tmp_path / "run").data
    assert opened.manifest == data.manifest


def test_text_without_corpora_has_no_table(tmp_path: pathlib.Path) -> None:
    preparation = vaswani_jax.prepare(settings.small_settings(), tmp_path)
    assert preparation.epochs == () and preparation.format_epochs() == ""
    assert preparation.describe().startswith("vocabulary of ")


def test_a_seed_that_training_refuses_is_refused_before_the_text_is_read(
    tmp_path: pathlib.Path,
) -> None:
    small = settings.small_settings(seed=2**32)
    with pytest.raises(ValueError, match="4294967295"):
        vaswani_jax.prepare(small, tmp_path / "run")
    assert not (tmp_path / "run" / "data").exists()


def test_what_is_no_config_is_refused(tmp_path: pathlib.Path) -> None:
    # Without the checks of types that tests have.
    program = (
        "import sys, vaswani_jax\n"
        "for function in (vaswani_jax.prepare, vaswani_jax.train):\n"
        "    try:\n"
        "        function('demo', sys.argv[1])\n"
        "    except TypeError as error:\n"
        "        print(error)\n"
    )
    printed = interpreter.output_of(program, str(tmp_path / "run"))
    line = "config must be a Config, as load_config returns it; got 'demo'"
    assert printed == f"{line}\n{line}"
    assert not (tmp_path / "run").exists()
