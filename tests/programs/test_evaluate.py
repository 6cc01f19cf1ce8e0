"""evaluate as a user runs it: scores on the terminal, and beside the checkpoints."""

import json
import pathlib

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
    assert b"warning" not in result.stderr and b"sacrebleu" not in result.stderr
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
