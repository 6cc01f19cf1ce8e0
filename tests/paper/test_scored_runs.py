"""Runs are found by their settings in workdirs, and judged if they are complete."""

import dataclasses
import json
import math
import os

import pytest

from configs import base_ende, big_ende, table3
from tests.paper.workdirs import ROWS, SMALL, cells, leave, read
from vaswani_jax.checkpoints import store
from vaswani_jax.core import config, parsing
from vaswani_jax.paper import scored_runs, small_table3, tables


@pytest.mark.parametrize(
    "changes",
    [
        {"training.average_checkpoints": 2},
        {"training.num_steps": 99_999},
        {"training.label_smoothing_form": "others"},
        {"optimizer.beta2": 0.997},
        {"optimizer.warmup_steps": 16_000},
        {"data.vocab_size": 8000},
        {"data.target_tokens_per_batch": 2048},
        {"model.num_heads": 4},
    ],
    ids=str,
)
def test_a_run_of_other_settings_is_not_taken_for_a_row(tmp_path, changes):
    values = table3.get_config("base")
    values.update_from_flattened_dict(changes)
    leave(tmp_path / "a", parsing.parse(values), bleu=25.8, perplexity=4.92)
    assert cells(tables.table3(ROWS, read(tmp_path)), "base")[7] == "not run"


def test_a_search_of_other_settings_is_not_taken_for_a_row(tmp_path):
    leave(tmp_path / "a", ROWS["base"], search={"beam_size": 1})
    assert cells(tables.table3(ROWS, read(tmp_path)), "base")[7] == "not run"


@pytest.mark.parametrize(
    "changes", [{"lowercase_scores": True}, {"text_form": "tokenized"}], ids=str
)
def test_scores_of_another_kind_are_not_taken_for_a_rows(tmp_path, changes):
    data = dataclasses.asdict(ROWS["base"].data) | changes
    names = ("paper_bleu_split_ascii_lc", "tokenized_bleu")
    scores = [{"name": name, "value": 25.8} for name in names]
    leave(tmp_path / "a", ROWS["base"], perplexity=4.92, data=data, scores=scores)
    assert cells(tables.table3(ROWS, read(tmp_path)), "base")[7] == "not run"


def test_where_and_how_it_was_computed_is_no_other_run(tmp_path):
    values = table3.get_config("base")
    values.update_from_flattened_dict(
        {"model.dtype": "bfloat16", "training.accumulate_steps": "4", "seed": 2}
    )
    leave(tmp_path / "a", parsing.parse(values))
    assert cells(tables.table3(ROWS, read(tmp_path)), "base")[7] != "not run"


def test_an_average_is_not_table_3s_and_a_last_checkpoint_not_table_2s(tmp_path):
    presets = {
        (size, language): parsing.parse(module.get_config())
        for size, module in (("base", base_ende), ("big", big_ende))
        for language in ("de", "fr")
    }
    leave(tmp_path / "averaged", presets["base", "de"])
    leave(tmp_path / "last", ROWS["base"], split="test")
    runs = read(tmp_path)
    assert cells(tables.table3(ROWS, runs), "base")[7] == "not run"
    assert cells(tables.table2(presets, runs), "**base, this code**")[1] == "not run"


def test_what_cannot_be_read_is_named_and_left_out(tmp_path):
    for name in ("whole", "settings", "record", "keys", "list"):
        leave(tmp_path / name, ROWS["base"])
    (tmp_path / "settings" / "config.json").write_text("{")
    (tmp_path / "list" / "config.json").write_text("[]")
    for name, text in (("record", '{"split"'), ("keys", '{"split": "valid"}')):
        [path] = (tmp_path / name / "evaluations").iterdir()
        path.write_text(text)
    runs, unreadable = scored_runs.read(tmp_path)
    assert [run.workdir.name for run in runs] == ["whole"]
    assert [line.split("/evaluations")[0] for line in unreadable] == [
        str(tmp_path / name) for name in ("keys", "list", "record", "settings")
    ]


def test_scores_of_other_texts_are_not_the_paper_s(tmp_path):
    leave(tmp_path / "run", ROWS["base"])
    leave(tmp_path / "run", ROWS["base"], split="news", **{"news/perplexity": 0})
    (tmp_path / "run/evaluations/news.json").write_text('{"split": "news"}')
    runs, unreadable = scored_runs.read(tmp_path)
    assert ([run.record["split"] for run in runs], unreadable) == (["valid"], [])


def test_a_comparable_run_of_a_row_is_preferred_to_a_newer_one(tmp_path):
    leave(tmp_path / "base", ROWS["base"])
    for time, (name, vocabulary) in enumerate((("alike", {}), ("unlike", "4567"))):
        changes = {"vocabulary": vocabulary} if vocabulary else {}
        leave(tmp_path / name, ROWS["A1"], **changes)
        [path] = (tmp_path / name / "evaluations").iterdir()
        os.utime(path, (2e9 + time, 2e9 + time))
    run = scored_runs.find_rows(read(tmp_path), ROWS)["A1"]
    assert (run.workdir.name, run.flaw) == ("alike", "")


def test_a_run_that_begins_again_has_no_flaw_of_its_past(tmp_path):
    changed = {"key": "model.dropout_rate", "was": 0.1, "now": 0.3}
    past = {"init_from": "runs/x", "changes": [changed], "step": 0}
    past["environment"] = {"revision": "abc"}
    own = {"init_from": None, "changes": [], "step": 0}
    own["environment"] = {"revision": "def"}
    for name, starts in (("again", [past, own]), ("past", [past, own | {"step": 9}])):
        leave(tmp_path / name, ROWS["base"], starts=starts)
    again, continued = read(tmp_path)
    assert (again.flaw, again.revisions) == ("", ("def",))
    assert continued.flaw == "started from runs/x"
    assert continued.revisions == ("abc", "def")


def test_a_score_of_an_earlier_run_does_not_count_for_the_next(tmp_path):
    first, second = (
        {"id": f"{letter * 32}", "init_from": "", "changes": [], "step": 0}
        for letter in "ab"
    )
    resumed = {**first, "id": "c" * 32, "step": 9}
    for name, starts in (("again", [first, second]), ("resumed", [first, resumed])):
        leave(tmp_path / name, ROWS["base"], starts=starts, run="a" * 8)
    again, continued = read(tmp_path)
    assert again.flaw == "scored an earlier run of this workdir"
    assert continued.flaw == ""
    assert scored_runs.complete(again) is None


@pytest.mark.parametrize("other", ["paper_bleu[de]", "chrf[de]"])
def test_a_mean_with_chrf_is_no_bleu(tmp_path, other):
    signature = f"mean|of:paper_bleu[fr],{other}"
    scores = [{"name": "mean", "value": 30.0, "signature": signature}]
    data = dataclasses.asdict(ROWS["base"].data) | {"target_locale": "de,fr"}
    leave(tmp_path / "several", ROWS["base"], data=data, scores=scores)
    [run] = read(tmp_path)
    assert run.has_bleu == ("chrf" not in other)


def test_a_run_of_several_target_languages_is_read_by_their_mean(tmp_path):
    scores = [{"name": "mean", "value": 30.0}, {"name": "paper_bleu[de]", "value": 7}]
    data = dataclasses.asdict(ROWS["base"].data) | {"target_locale": "de,fr"}
    leave(tmp_path / "several", ROWS["base"], data=data, scores=scores)
    [run] = read(tmp_path)
    assert (run.metric, run.score) == ("mean", 30.0)


@pytest.mark.parametrize("seed", [None, "one", 1.5, {"a": 1}])
def test_a_run_without_a_seed_is_named_and_left_out(tmp_path, seed):
    for name in ("odd", "whole"):
        leave(tmp_path / name, ROWS["base"], bleu=25.8, perplexity=4.92)
    values = json.loads((tmp_path / "odd" / "config.json").read_text())
    values.pop("seed")
    values = values if seed is None else {**values, "seed": seed}
    (tmp_path / "odd" / "config.json").write_text(json.dumps(values))
    runs, [problem] = scored_runs.read(tmp_path)
    assert str(tmp_path / "odd") in problem and "seed of its config.json" in problem
    assert cells(tables.table3(ROWS, runs), "base")[10] == "reproduced"


def test_a_workdir_is_not_a_directory_of_workdirs(tmp_path):
    leave(tmp_path / "a", ROWS["base"])
    with pytest.raises(ValueError, match="is a workdir"):
        scored_runs.read(tmp_path / "a")


DROPOUT = {"key": "model.dropout_rate", "was": 0.1, "now": 0.2}
SPIKES = {"key": "training.max_loss_rise", "was": 0.5, "now": 0.0}
LONGER = {"key": "training.num_steps", "was": 50, "now": 100_000}
EVERY = {"key": "training.checkpoint_every_steps", "was": 1500, "now": 1000}
ELSEWHERE = {"key": "model.dtype", "was": "float32", "now": "bfloat16"}


@pytest.mark.parametrize(
    ("flawed", "flaw"),
    [
        ({"step": 200}, "scored at step 200 of 100,000"),
        ({"valid/perplexity": math.nan}, "its perplexity is nan"),
        (
            {"averaged": [97_000, 98_500, 100_000]},
            "the average of the checkpoints [97000, 98500, 100000], not of [100000]",
        ),
        ({"starts": [{"init_from": "runs/other"}]}, "started from runs/other"),
        (
            {"starts": [{"changes": [DROPOUT]}, {}]},
            "config.model.dropout_rate changed from 0.1 to 0.2",
        ),
        (
            {"starts": [{"changes": [SPIKES]}]},
            "config.training.max_loss_rise changed from 0.5 to 0.0",
        ),
    ],
)
def test_an_incomplete_run_is_named_and_not_judged(tmp_path, flawed, flaw):
    right = {"bleu": 25.8, "perplexity": 4.92}
    leave(tmp_path / "a", ROWS["base"], **right, **flawed)
    row = cells(tables.table3(ROWS, read(tmp_path)), "base")
    assert row[5:] == [
        *("", "4.92", "not run", "", "25.8", "not run"),
        f"{tmp_path / 'a'}: {flaw}",
    ]
    # A complete one, however old, comes first.
    leave(tmp_path / "b", ROWS["base"], **right)
    [path] = (tmp_path / "b" / "evaluations").iterdir()
    os.utime(path, (0, 0))
    row = cells(tables.table3(ROWS, read(tmp_path)), "base")
    assert row[-1] == f"{tmp_path / 'b'}: paper_bleu_split_ascii"


def test_a_run_that_was_prolonged_or_moved_is_whole(tmp_path):
    starts = [{"changes": [LONGER]}, {"changes": [ELSEWHERE]}]
    leave(tmp_path / "a", ROWS["base"], starts=starts, bleu=25.8)
    assert cells(tables.table3(ROWS, read(tmp_path)), "base")[10] == "reproduced"


def test_a_start_that_makes_no_update_changes_nothing(tmp_path):
    starts = [{"step": 0}, {"step": 100_000, "changes": [DROPOUT]}]
    leave(tmp_path / "a", ROWS["base"], starts=starts)
    [run] = read(tmp_path)
    assert run.flaw == ""
    starts[1]["step"] = 99_000
    leave(tmp_path / "a", ROWS["base"], starts=starts)
    [run] = read(tmp_path)
    assert run.flaw.startswith("config.model.dropout_rate changed")


def test_a_start_without_updates_makes_no_run_of_its_settings(tmp_path):
    starts = [{"step": 0}, {"step": 100_000, "changes": [DROPOUT, EVERY]}]
    starts.append({"step": 100_000, "changes": [DROPOUT | {"now": 0.3}]})
    values = table3.get_config("D2")
    values.model.dropout_rate = 0.3
    values.training.checkpoint_every_steps = 1000
    leave(tmp_path / "a", parsing.parse(values), starts=starts, bleu=25.8)
    table = tables.table3(ROWS, read(tmp_path))
    assert cells(table, "base")[10] == "reproduced"
    assert cells(table, "D2")[7] == "not run"
    # One that makes updates makes them with its settings.
    starts[1]["step"] = 99_000
    leave(tmp_path / "a", ROWS["D2"], starts=starts[:2])
    [run] = read(tmp_path)
    assert run.settings["model.dropout_rate"] == 0.2
    assert run.flaw.startswith("config.model.dropout_rate changed")


@pytest.mark.parametrize("num_worse", [2, 3])
def test_a_run_that_patience_ended_is_whole(tmp_path, num_worse):
    values = table3.get_config("base")
    values.training.patience = 3
    leave(tmp_path / "a", parsing.parse(values), step=9000, averaged=[9000])
    record = tmp_path / "a" / "averaged" / "9000" / store.RECORD / "metadata"
    record.parent.mkdir(parents=True)
    record.write_text(json.dumps({"best": {"num_worse": num_worse}}))
    [run] = read(tmp_path)
    flaws = {2: "scored at step 9,000 of 100,000", 3: ""}
    assert run.flaw == flaws[num_worse]


def test_a_run_without_a_record_of_its_start_is_not_judged(tmp_path):
    leave(tmp_path / "a", ROWS["base"], bleu=25.8, perplexity=4.92)
    (tmp_path / "a" / "starts.jsonl").unlink()
    row = cells(tables.table3(ROWS, read(tmp_path)), "base")
    assert row[7] == "not run" and "its start is not recorded" in row[-1]


@pytest.mark.parametrize("table", [tables.table3, small_table3.format_table])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"references": "4567"}, "scored on another text than"),
        ({"vocabulary": "4567"}, "of another vocabulary than"),
    ],
)
def test_a_row_of_other_subwords_or_text_is_not_compared(
    tmp_path, table, changes, reason
):
    rows = ROWS if table is tables.table3 else SMALL
    leave(tmp_path / "base", rows["base"])
    leave(tmp_path / "A2", rows["A2"], bleu=25.5, **changes)
    row = cells(table(rows, read(tmp_path)).split("\n\nWhat")[0], "A2")
    assert row[-1] == f"{tmp_path / 'A2'}: {reason} {tmp_path / 'base'}"
    assert "25.50" not in row


@pytest.mark.parametrize(
    ("module", "averaged"),
    [
        # 100,000 is no multiple of 1,500: the last interval is a shorter one.
        (base_ende, [94_500, 96_000, 97_500, 99_000, 100_000]),
        (big_ende, list(range(288_600, 300_001, 600))),
    ],
)
def test_a_whole_run_of_a_preset_is_found_and_judged(tmp_path, module, averaged):
    size = "base" if module is base_ende else "big"
    preset = parsing.parse(module.get_config())
    assert len(averaged) == preset.training.average_checkpoints
    presets = {(s, x): preset for s in ("base", "big") for x in ("de", "fr")}
    record = {"split": "test", "bleu": 27.2 if size == "base" else 28.5}
    leave(tmp_path / "a", preset, averaged=averaged, **record)
    cell = cells(tables.table2(presets, read(tmp_path)), f"**{size}, this code**")[1]
    assert cell == (
        f"{record['bleu']:.2f}, reproduced ({tmp_path / 'a'}: paper_bleu_split_ascii)"
    )


def test_a_vocabulary_from_fewer_lines_is_another_one(tmp_path):
    values = table3.get_config("base")
    values.update_from_flattened_dict({"data.sentencepiece_sample_size": 1000})
    leave(tmp_path / "a", parsing.parse(values), bleu=25.8, perplexity=4.92)
    assert cells(tables.table3(ROWS, read(tmp_path)), "base")[7] == "not run"


def test_a_run_from_before_a_setting_was_one_did_what_was_done_then(tmp_path):
    def forget(values, section):
        return {
            key: value
            for key, value in values.items()
            if config.SETTINGS[f"{section}.{key}"].legacy is None
        }

    for name, changes in (("then", {}), ("now", {"model.activation": "swish"})):
        values = table3.get_config("base")
        values.update_from_flattened_dict(changes)
        leave(tmp_path / name, parsing.parse(values), bleu=25.8, perplexity=4.92)
    for path in (tmp_path / "then").rglob("*.json"):
        old = json.loads(path.read_text())
        for section in {"model", "data", "search"} & old.keys():
            old[section] = forget(old[section], section)
        path.write_text(json.dumps(old))
    assert "activation" not in (tmp_path / "then" / "config.json").read_text()
    table = tables.table3(ROWS, read(tmp_path))
    assert str(tmp_path / "then") in cells(table, "base")[-1]


def test_runs_of_seeds_have_their_mean_and_spread(tmp_path):
    values = {number: table3.get_config("base") for number in (1, 2, 3, 4)}
    for number, value in values.items():
        value.seed = number
    values[4].model.dropout_rate = 0.2  # of another system
    for number, bleu in ((1, 24.0), (2, 25.0), (3, 26.5), (4, 90.0)):
        leave(
            tmp_path / "several" / f"seed-{number}",
            parsing.parse(values[number]),
            bleu=bleu,
            perplexity=4 + number,
        )
    leave(tmp_path / "alone", ROWS["base"], bleu=80.0)
    # Read from above, and as the directory of seeds that it is.
    for directory in (tmp_path, tmp_path / "several"):
        first, second = scored_runs.group_seeds(read(directory))
        assert [run.settings["seed"] for run in first] == [1, 2, 3]
        assert [run.settings["seed"] for run in second] == [4]
        [row] = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in tables.average_seeds(read(directory)).splitlines()
            if "| 1, 2, 3 |" in line
        ]
        assert row[0] == str(tmp_path / "several")
        # Deviations of -1.1667, -0.1667 and 1.3333: squares 3.1667, over 2.
        assert row[5:8] == ["6.00", "25.17", "sd 1.26, 24.00 to 26.50"]
        assert row[8] == "paper_bleu_split_ascii"
    for number in (1, 2):
        record = f"seed-{number}/evaluations"
        [path] = (tmp_path / "several" / record).glob("*.json")
        newest = json.loads(path.read_text()) | {"checkpoint": "newest"}
        newest["averaged"] = None
        path.write_text(json.dumps(newest))
    [row] = [
        line
        for line in tables.average_seeds(read(tmp_path)).splitlines()
        if "| 1, 2 |" in line
    ]
    assert "newest" in row and row.endswith("| paper_bleu_split_ascii |")
    assert "No runs of several seeds" in tables.average_seeds(read(tmp_path / "none"))


@pytest.mark.parametrize("changed", ["references", "vocabulary"])
def test_another_text_or_vocabulary_is_no_other_seed(tmp_path, changed):
    leave(tmp_path / "base", SMALL["base"], bleu=30.0, perplexity=8.0)
    for seed, changes in ((2, {}), (3, {changed: "4567"})):
        settings = dataclasses.replace(SMALL["base"], seed=seed)
        values = {"bleu": 40.0 + seed, "perplexity": 5.0}
        leave(tmp_path / str(seed), settings, **values, **changes)
    runs = read(tmp_path)
    found = scored_runs.find_seeds(runs, SMALL["base"], split="valid")
    assert {seed: run.score for seed, run in found.items()} == {1: 30.0, 2: 42.0}
    noise = small_table3.measure_noise(found, base=found[1])
    assert noise["bleu"] == 12.0
    # The change from 8 to another seed's 5, as a share of the base model's 8.
    assert noise["perplexity"] == pytest.approx(3 / 8)
    assert scored_runs.find_seeds(runs, ROWS["base"], split="valid") == {}


@pytest.mark.parametrize("lowercase", [False, True])
def test_a_run_that_chrf_alone_scores_is_read_and_in_no_table_of_bleu(
    tmp_path, lowercase
):
    data = dataclasses.asdict(SMALL["base"].data) | {"lowercase_scores": lowercase}
    name = "chrf_lc" if lowercase else "chrf"
    leave(
        tmp_path / "a",
        SMALL["base"],
        data=data,
        scores=[{"name": name, "value": 61.25}],
    )
    runs = read(tmp_path)
    [run] = runs
    assert (run.metric, run.score) == (name, 61.25)
    assert not run.has_bleu
    assert small_table3.format_table(SMALL, runs) == small_table3.format_table(
        SMALL, []
    )
    listed = tables.evaluations(runs)
    assert "| perplexity | chrF2 | is |" in listed
    assert f"| 61.25 | {name} |" in listed


def test_a_record_without_its_score_is_named_with_those_that_it_has(tmp_path):
    scores = [{"name": "chrf_lc", "value": 60.0}, {"name": "ter", "value": 7.0}]
    leave(tmp_path / "a", SMALL["base"], scores=scores)
    leave(tmp_path / "b", SMALL["base"], scores=[])
    runs, problems = scored_runs.read(tmp_path)
    assert runs == []
    for problem, workdir, names in zip(
        problems, ("a", "b"), ("chrf_lc, ter", "none"), strict=True
    ):
        assert problem.startswith(f"{tmp_path / workdir}/evaluations/")
        assert f"must have the score tokenized_bleu, it has {names}; " in problem
