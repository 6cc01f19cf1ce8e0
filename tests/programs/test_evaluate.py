"""evaluate as a user runs it: scores on the terminal, and beside the checkpoints."""

import json
import pathlib
import shutil

from tests.programs import runs


def test_evaluate_prints_scores_with_signatures(trained: pathlib.Path) -> None:
    result = runs.vaswani("evaluate", trained, "--split=test", "--samples=2")
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    assert "10 lines in, 10 lines out" in shown
    assert "multi-bleu|" in shown and "test/perplexity" in shown
    assert shown.count("reference ") == 2
    written = trained / "evaluations/test-averaged-beam2-alpha0.6.json"
    record = json.loads(written.read_text())
    assert record["averaged"] == [4, 8] and record["lines"] == 10
    # The model has learned too little to end its translations. Nothing else is warned.
    assert (
        result.stderr.count(b"warning") == result.stderr.count(b"without an end") == 1
    )
    assert b"sacrebleu" not in result.stderr
    other = runs.vaswani("evaluate", trained, "--config.data.text_form=detokenized")
    assert other.returncode == 0, other.stderr.decode()
    assert (
        other.stderr.count(b"warning: config.data.text_form is 'detokenized', was ")
        == 1
    )


def test_the_name_of_a_run_may_name_its_checkpoint(trained: pathlib.Path) -> None:
    for checkpoint in ("checkpoints/4", "averaged/8"):
        result = runs.vaswani("evaluate", trained / checkpoint, "--split=test")
        assert result.returncode == 0, result.stderr.decode()
    written = trained / "evaluations"
    for name in ("4", "averaged-8"):
        assert (written / f"test-{name}-beam2-alpha0.6.json").exists()


def test_scores_that_cannot_be_kept_are_printed(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    copy = shutil.copytree(trained, tmp_path / "copy")
    shutil.rmtree(copy / "evaluations")
    (copy / "evaluations").write_text("a file in the place of the directory")
    result = runs.vaswani("evaluate", copy, "--split=valid,test")
    assert result.returncode == 0, result.stderr.decode()
    for split in ("valid", "test"):
        assert f"{split}: 10 lines in, 10 lines out" in result.stdout.decode()
        line = f"warning: the scores of {split} are printed but could not be stored: "
        assert line in result.stderr.decode()


def test_another_text_of_the_same_name_replaces_no_outputs(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    for year, line in (("2014", "3 5"), ("2015", "5 3")):
        (tmp_path / year).mkdir()
        for side in ("source", "target"):
            (tmp_path / year / f"news.{side}").write_text(f"{line}\n")
    texts = [
        f"--split={tmp_path}/{year}/news.source,{tmp_path}/{year}/news.target"
        for year in ("2014", "2015")
    ]
    for _ in range(2):  # The same text may be scored again.
        result = runs.vaswani("evaluate", trained, texts[0])
        assert result.returncode == 0, result.stderr.decode()
    [kept] = (trained / "evaluations").glob("news-*.json")
    before = kept.read_text()
    result = runs.vaswani("evaluate", trained, texts[1])
    assert result.returncode == 1
    assert (
        "has the scores of a different text news: name this" in result.stderr.decode()
    )
    assert kept.read_text() == before
    for path in (trained / "evaluations").glob("news-*"):
        path.unlink()


def test_an_ensemble_is_refused_before_it_is_loaded(trained: pathlib.Path) -> None:
    result = runs.vaswani("evaluate", trained, "--checkpoint=newest,best")
    message = "--checkpoint=newest,best is an ensemble: name one checkpoint"
    assert message in runs.error_of(result)


def test_evaluate_scores_several_texts(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "news.source").write_text("3 5 7\n2 4\n")
    (tmp_path / "news.target").write_text("3 5 7\n2 4\n")
    files = f"--split={tmp_path / 'news.source'},{tmp_path / 'news.target'}"
    result = runs.vaswani("evaluate", trained, "--split=valid,test", files)
    assert result.returncode == 0, result.stderr.decode()
    shown = result.stdout.decode()
    for line in ("valid: 10 lines in", "test: 10 lines in", "news: 2 lines in"):
        assert line in shown
    assert shown.count("95% of 1,000 resamples (bootstrap, seed 12345): token") == 3
    assert "valid/perplexity" in shown and "news/perplexity" not in shown
    folder = trained / "evaluations"
    record = json.loads((folder / "news-averaged-beam2-alpha0.6.json").read_text())
    assert (record["split"], record["lines"]) == ("news", 2)
    assert record["scores"][0]["interval"]["resamples"] == 1000
    refused = runs.vaswani("evaluate", trained, "--split=tset")
    assert "--split=tset must be valid, test, or two files" in runs.error_of(refused)
