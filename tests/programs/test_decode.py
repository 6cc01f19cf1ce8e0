"""decode as a user runs it: every flag, and what contradicts itself."""

import contextlib
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from tests import ugly_text
from tests.programs import command_lines, runs
from vaswani_jax.inference import line_io

LINES = "a b c\n\nd e\nf g a b\n"


def decoded(
    trained: pathlib.Path, *flags: str, stdin: str = LINES
) -> subprocess.CompletedProcess[bytes]:
    result = runs.vaswani("decode", trained, *flags, stdin=stdin.encode())
    assert result.returncode == 0, result.stderr.decode()
    return result


def lines_of(trained: pathlib.Path, *flags: str, stdin: str = LINES) -> list[str]:
    return decoded(trained, *flags, stdin=stdin).stdout.decode().splitlines()


@pytest.fixture(scope="module")
def best_lines(trained: pathlib.Path) -> list[str]:
    """The best translation of each of LINES."""
    return lines_of(trained)


def test_decode_gives_one_line_for_each_line(trained: pathlib.Path) -> None:
    lines = ["a b c", "", "   ", "z " * 90, "\u00fc\u2028\x0b", "<unk> \u2581", "a b c"]
    result = runs.vaswani("decode", trained, stdin="\n".join(lines).encode())
    assert result.returncode == 0, result.stderr.decode()
    outputs = result.stdout.decode().split("\n")
    assert len(outputs) == len(lines) + 1 and outputs[-1] == ""
    assert outputs[1] == outputs[2] == ""
    assert outputs[0] == outputs[6]


def test_decode_reads_and_writes_files(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "in").write_bytes(b"a b\r\nc d\r\n")
    flags = [f"--input={tmp_path / 'in'}", f"--output={tmp_path / 'out'}"]
    result = runs.vaswani("decode", trained, *flags, "--checkpoint=average:2")
    assert result.returncode == 0, result.stderr.decode()
    assert len((tmp_path / "out").read_text().split("\n")) == 3


def test_empty_input_gives_empty_output(trained: pathlib.Path) -> None:
    result = runs.vaswani("decode", trained, stdin=b"")
    assert (result.returncode, result.stdout) == (0, b"")


def test_config_is_found_from_any_directory(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    words = ["-m", "vaswani_jax.decode", f"--workdir={trained}"]
    config = f"--config={runs.ROOT / 'configs' / 'demo.py'}:none"
    result = runs.run(sys.executable, *words, config, cwd=tmp_path)
    # The config was read, and its function has no such argument: no traceback.
    error = runs.error_of(result)
    assert "demo.py:none" in error and "has no variants" in error


def test_several_hypotheses_are_written_with_their_scores(
    trained: pathlib.Path, best_lines: list[str]
) -> None:
    result = decoded(trained, "--num_hypotheses=2")
    rows = [row.split("\t") for row in result.stdout.decode().splitlines()]
    assert f"4 lines in, {len(rows)} lines out" in result.stderr.decode()
    assert [row[0] for row in rows if row[1] == "1"] == ["1", "2", "3", "4"]
    assert [row[3] for row in rows if row[1] == "1"] == best_lines
    for first, second in itertools.pairwise(rows):
        if second[1] == "2":
            assert float(first[2]) >= float(second[2]) and first[3] != second[3]
    assert any(row[1] == "2" for row in rows)


def test_token_scores_add_up_to_the_hypothesiss_score(trained: pathlib.Path) -> None:
    flags = ["--format=json", "--token_scores", "--num_hypotheses=2"]
    records = [json.loads(line) for line in lines_of(trained, *flags)]
    assert [record["line"] for record in records] == [1, 2, 3, 4]
    for entry in (entry for record in records for entry in record["hypotheses"]):
        assert len(entry["tokens"]) == len(entry["log_probs"])
        penalty = ((5 + len(entry["tokens"])) / 6) ** 0.6
        total = sum(entry["log_probs"]) / penalty
        np.testing.assert_allclose(entry["score"], total, rtol=1e-3, atol=1e-6)


def test_given_outputs_are_scored(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    # Bytes spell ugly text; longer lines are refused.
    ugly = [line for line in ugly_text.LINES if len(line.encode()) < 60]
    assert len(ugly) > 40
    for name, first in (("source", LINES), ("target", "a b c\n\nd e\nb a\n")):
        text = first + "".join(line + "\n" for line in ugly)
        (tmp_path / name).write_bytes(text.encode())
    flags = [f"--{name}={tmp_path / name}" for name in ("target",)]
    flags += ["--score", f"--input={tmp_path / 'source'}"]
    # A run may record that it samples; what is scored is given.
    flags += ["--config.search.sampling"]
    result = decoded(trained, *flags, "--format=json")
    scored = [json.loads(line) for line in result.stdout.decode().splitlines()]
    assert scored[1]["tokens"] == ["</s>"]
    for entry in scored:
        np.testing.assert_allclose(
            entry["log_prob"], sum(entry["log_probs"]), rtol=1e-5
        )
        each = -entry["log_prob"] / len(entry["tokens"])
        np.testing.assert_allclose(entry["perplexity"], np.exp(each), rtol=1e-5)
    total = sum(entry["log_prob"] for entry in scored)
    tokens = sum(len(entry["tokens"]) for entry in scored)
    messages = result.stderr.decode()
    assert f"{4 + len(ugly)} pairs, {tokens} tokens, log P {total:.4f}" in messages
    assert f"perplexity {np.exp(-total / tokens):.4f}" in messages
    plain = lines_of(trained, *flags)
    np.testing.assert_allclose(
        [float(line) for line in plain],
        [entry["log_prob"] for entry in scored],
        atol=1e-5,
    )


def test_each_line_begins_with_its_prefix(
    trained: pathlib.Path, tmp_path: pathlib.Path, best_lines: list[str]
) -> None:
    (tmp_path / "prefix").write_text("g\n\nb b\n\n")
    contents = lines_of(trained, f"--prefix={tmp_path / 'prefix'}")
    # What follows may go on with the last word.
    assert contents[0].startswith("g") and contents[2].startswith("b b")
    assert (contents[1], contents[3]) == (best_lines[1], best_lines[3])


def test_each_line_has_the_terms_of_the_glossary(
    trained: pathlib.Path, tmp_path: pathlib.Path, best_lines: list[str]
) -> None:
    path = tmp_path / "glossary"
    path.write_text("b c\tg h\nf\td d\n")
    contents = lines_of(trained, f"--glossary={path}")
    assert "g h" in contents[0] and "d d" in contents[3]
    assert contents[1:3] == best_lines[1:3]
    refused = runs.vaswani("decode", trained, f"--glossary={path}", f"--output={path}")
    assert "is an input or another output" in runs.error_of(refused)


def test_alignments_and_attention_of_each_line_are_written(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    words, arrays = tmp_path / "words", tmp_path / "attention.npz"
    lines = [*LINES.splitlines(), *ugly_text.LINES]
    flags = [f"--alignments={words}", f"--attention={arrays}"]
    result = decoded(trained, *flags, stdin="\n".join(lines))
    outputs = result.stdout.decode().removesuffix("\n").split("\n")
    aligned = words.read_text().removesuffix("\n").split("\n")
    assert len(aligned) == len(outputs) == len(lines)
    # Each line with a character that the letters lack is counted.
    counts = re.search(r"(\d+) lines have characters that", result.stderr.decode())
    assert counts and int(counts[1]) == 44
    contents = np.load(arrays)
    for number, (line, output, pairs) in enumerate(
        zip(lines, outputs, aligned, strict=True), start=1
    ):
        each = [tuple(map(int, pair.split("-"))) for pair in pairs.split()]
        if not line.strip():
            assert not each and not output
            continue
        assert [target for _, target in each] == list(range(len(output.split())))
        assert all(source < len(line.split()) for source, _ in each)
        weights = contents[f"{number}.1/attention"]
        shape = len(contents[f"{number}.1/target"]), len(contents[f"{number}.1/source"])
        assert weights.shape[2:] == shape
        np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        for kind, length in (("encoder", shape[1]), ("decoder", shape[0])):
            weights = contents[f"{number}.1/{kind}"]
            assert weights.shape[2:] == (length, length)
            np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
        # Later words are out of the decoder's sight.
        assert not np.triu(contents[f"{number}.1/decoder"], 1).any()


def test_a_weight_of_zero_changes_no_translation(
    trained: pathlib.Path, best_lines: list[str]
) -> None:
    model = f"--rerank_with={trained}@newest"
    assert lines_of(trained, model, "--rerank_weight=0") == best_lines
    error = runs.error_of(runs.vaswani("decode", trained, "--reverse_weight=nan"))
    assert "--reverse_weight must be a number from -1000 to 1000, got nan" in error


def test_a_reverse_run_adds_its_scores_to_the_candidates(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    reverse = tmp_path / "reverse"
    shutil.copytree(trained, reverse)
    record = json.loads((reverse / "config.json").read_text())
    data = record["data"]
    data["source_locale"], data["target_locale"] = (
        data["target_locale"],
        data["source_locale"],
    )
    (reverse / "config.json").write_text(json.dumps(record))
    lists = []
    for flags in ((), (f"--rerank_reverse={reverse}", "--reverse_weight=0.5")):
        rows = [
            row.split("\t") for row in lines_of(trained, "--num_hypotheses=2", *flags)
        ]
        lists.append({(number, text): float(score) for number, _, score, text in rows})
        for _, group in itertools.groupby(rows, key=lambda row: row[0]):
            scores = [float(score) for _, _, score, _ in group]
            assert scores == sorted(scores, reverse=True)
    forward, both = lists
    assert forward.keys() == both.keys()
    # What the other direction adds is the logarithm of a probability.
    assert all(both[key] < forward[key] for key in both if key[1])


def test_samples_come_from_their_seed(trained: pathlib.Path) -> None:
    flags = ["--config.search.sampling", "--num_hypotheses=3"]
    first, second, third = (
        lines_of(trained, *flags, f"--config.seed={seed}") for seed in (5, 5, 6)
    )
    assert first == second != third


def test_lengths_and_repetition_are_held_to_their_settings(
    trained: pathlib.Path,
) -> None:
    limits = {"min_tokens": 3, "max_tokens": 5, "no_repeat_ngram": 1}
    flags = [f"--config.search.{key}={value}" for key, value in limits.items()]
    flags += ["--format=json", "--token_scores", "--num_hypotheses=2"]
    records = [json.loads(line) for line in lines_of(trained, *flags)]
    outputs = [entry["tokens"] for record in records for entry in record["hypotheses"]]
    assert not records[1]["hypotheses"][0]["tokens"]  # of an empty line
    for tokens in filter(None, outputs):
        assert 3 <= len(tokens) <= 5
        words = [token for token in tokens if token != "</s>"]
        assert len(set(words)) == len(words)


def test_checkpoints_and_runs_decode_together(trained: pathlib.Path) -> None:
    once = lines_of(trained, "--checkpoint=newest", "--num_hypotheses=2")
    twice = lines_of(trained, "--checkpoint=newest,newest", "--num_hypotheses=2")
    for row, same in zip(once, twice, strict=True):
        assert row.split("\t")[3] == same.split("\t")[3]
        np.testing.assert_allclose(
            float(row.split("\t")[2]), float(same.split("\t")[2]), rtol=1e-3
        )
    result = decoded(trained, "--checkpoint=4", f"--ensemble={trained}@8")
    assert b"checkpoint 4: step 4" in result.stderr
    assert b"checkpoint 8: step 8" in result.stderr


def test_output_that_nobody_reads_ends_quietly(trained: pathlib.Path) -> None:
    command = runs.command("decode", trained)
    text = "\n".join(["a b c d"] * 20_000)
    with runs.running(command, stdin=subprocess.PIPE) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(b"a b\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(text.encode())
            process.stdin.flush()
        # It is not closed: whoever waits for more must not keep the program.
        messages = process.stderr.read().decode()
        assert process.wait(timeout=300) == 141
    assert "Traceback" not in messages and "Exception" not in messages, messages


REFUSED = {
    "--num_hypotheses=3": "--num_hypotheses=3 is more than config.search",
    "--score --target=/t --num_hypotheses=2": (
        "--score takes --target, --format and the models alone: leave out --num_"
    ),
    "--target=/t": "--target=/t needs --score",
    "--input=/tmp/same --output=/tmp/same": "--output: /tmp/same is an",
    "--score": "--score needs --target=FILE",
    "--config.search.top_k=3": "config.search.top_k=3 needs config.search.sam",
    "--prefix=/nowhere/p": "--prefix: no file /nowhere/p",
    "--glossary=/nowhere/g": "--glossary: no file /nowhere/g",
    "--score --target=/t --glossary=/g": "leave out --glossary",
    "--glossary=": "--glossary has an empty path: name a file or a directory;",
    "--ensemble=": "--ensemble has an empty path: name a file or a directory;",
    "--rerank_with=a,": "--rerank_with has an empty path: name a file or a directory;",
    "--output=/nowhere/o": "--output: there is no directory /nowhere",
    "--aligning_layer=2 --alignments=/tmp/a": "must be from 1 to 1",
    "--ensemble=/nowhere/run": "/nowhere/run",
}


@pytest.fixture(scope="module")
def refusals(
    trained: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, subprocess.CompletedProcess[bytes]]:
    """Return the result of each refused command line; all run in one process."""
    directory = tmp_path_factory.mktemp("lines")
    _, _, _, *flags = runs.command("decode", trained)
    lines = [([*flags, *line.split()], directory) for line in REFUSED]
    results = command_lines.run("translate", lines, devices=8)
    return dict(zip(REFUSED, results, strict=True))


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_meant_is_refused(
    refusals: dict[str, subprocess.CompletedProcess[bytes]], line: str
) -> None:
    assert REFUSED[line] in runs.error_of(refusals[line])


def test_files_of_other_lengths_are_refused_before_work(
    trained: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "input").write_text("a\nb\n")
    (tmp_path / "other").write_text("a\n")
    for flags in (["--score", "--target"], ["--prefix"]):
        flag = f"{flags[-1]}={tmp_path / 'other'}"
        result = runs.vaswani(
            "decode", trained, *flags[:-1], flag, f"--input={tmp_path / 'input'}"
        )
        assert f"{flag} has 1 lines" in runs.error_of(result)
        assert not result.stdout


@pytest.mark.parametrize(
    ("name", "extra_flags"),
    [
        ("prefix", []),
        ("target", ["--config.search.max_extra_tokens=1", "--score"]),
    ],
)
def test_a_text_that_is_too_long_is_refused_before_work(
    trained: pathlib.Path, tmp_path: pathlib.Path, name: str, extra_flags: list[str]
) -> None:
    names = ("input", name, "output")
    lines, texts, output = (tmp_path / each for each in names)
    lines.write_text("a b\n" * (line_io.BLOCK_LINES + 3))
    texts.write_text("a\n" * (line_io.BLOCK_LINES + 1) + "a b c d e f\n\n")
    flags = [f"--{each}={tmp_path / each}" for each in names]
    flags += ["--config.search.max_source_tokens=5", *extra_flags]
    messages = runs.error_of(runs.vaswani("decode", trained, *flags))
    assert f"{name}, line {line_io.BLOCK_LINES + 2}: " in messages
    assert " tokens are more than" in messages
    assert not output.exists()
