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
    assert b"warning" not in result.stderr
    other = runs.vaswani("evaluate", trained, "--config.data.text_form=detokenized")
    assert other.returncode == 0, other.stderr.decode()
    assert (
        other.stderr.count(b"warning: config.data.text_form is 'detokenized', was ")
        == 1
    )
