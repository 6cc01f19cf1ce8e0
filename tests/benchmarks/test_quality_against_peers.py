"""The parts of `quality_against_peers` that could be wrong without a sign."""

import dataclasses
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys
import time
import types
from typing import Any

import numpy as np
import pytest
import sentencepiece

import vaswani_jax
from configs import base_ende
from tests.benchmarks import quality_against_peers
from tests.benchmarks.quality import (
    clock,
    comparison,
    evaluation,
    page,
    records,
    text,
)
from tests.benchmarks.quality import worker_eole as eole_worker
from tests.benchmarks.quality import worker_joeynmt as joeynmt_worker
from tests.benchmarks.quality import worker_marian as marian_worker
from tests.benchmarks.quality import worker_transformers as transformers_worker
from tests.benchmarks.quality.clock import Checkpoint, Sample
from tests.benchmarks.quality.systems import (
    SYSTEMS,
    VASWANI_JAX,
    Progress,
    Setting,
)
from tests.benchmarks.quality.tasks import MULTI30K, TASKS, TATOEBA, Task
from tests.docs import test_figures
from vaswani_jax.core import parsing
from vaswani_jax.data import token_files
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.training import optimizer

LINES = ["ein hund läuft .", "zwei hunde laufen .", "ein mann läuft schnell ."] * 20
TOKENIZED = parsing.parse(
    parsing.override_values(
        base_ende.get_config().to_dict(), {"data.text_form": "tokenized"}
    )
).data


def kept_runs() -> list[dict[str, Any]]:
    """Return the records of the runs on the page."""
    return [
        kept["record"]
        for task in TASKS
        for kept in records.read_kept(clock.ROOT / "docs/results/peers" / task).values()
    ]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Vocabulary:
    directory = tmp_path_factory.mktemp("vocabulary")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_prefix=str(directory / "subwords"),
        model_type="bpe",
        vocab_size=300,
        byte_fallback=True,
        normalization_rule_name="identity",
        pad_id=0,
        bos_id=1,
        eos_id=2,
        unk_id=3,
        minloglevel=2,
    )
    return Vocabulary.shared(Subwords.load(directory / "subwords.model"))


class TestSubwords:
    def test_joined_subwords_are_the_words(self, vocabulary: Vocabulary) -> None:
        lines = ["ein mann läuft .", "", "zwei Γάτες", "hunde läufen ein - zwei"]
        spelled = text.spell(vocabulary, lines, target=True)
        assert spelled[0] != lines[0]
        assert text.join(vocabulary, spelled) == lines

    def test_an_unlisted_subword_is_unknown(self, vocabulary: Vocabulary) -> None:
        [joined] = text.join(vocabulary, ["▁ein no_subword ▁ hund"])
        assert joined == vocabulary.decode(
            [vocabulary.subword_id("▁ein"), 3]
            + [vocabulary.subword_id(subword) for subword in ("▁", "hund")]
        )

    def test_subwords_end_at_the_end_mark(self, vocabulary: Vocabulary) -> None:
        [line] = text.spell(vocabulary, ["ein hund"], target=True)
        assert text.join(vocabulary, [f"{line} </s> ▁ein"]) == ["ein hund"]

    @pytest.mark.parametrize("subword", ["a b", "\u00a0", "a\u2028", ""])
    def test_white_space_in_a_subword_is_refused(self, subword: str) -> None:
        with pytest.raises(ValueError, match="white space"):
            text.check_subwords(["▁a", subword])

    def test_empty_lines_of_a_file_stay(self, tmp_path: pathlib.Path) -> None:
        lines = ["", "a", "", ""]
        text.write_lines(tmp_path / "lines", lines)
        assert text.read_lines(tmp_path / "lines") == lines

    @pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
    def test_a_sorted_training_text_is_shuffled_and_stays_aligned(
        self, task: Task, vocabulary: Vocabulary, tmp_path: pathlib.Path
    ) -> None:
        pairs = [(f"hund {n}", f"mann {n}") for n in range(40)]
        for side, lines in zip(text.SIDES, zip(*pairs, strict=True), strict=True):
            path = tmp_path / f"tokens.{side}"
            with token_files.open_writer(path, vocab_size=300) as writer:
                writer.write(vocabulary.encode(lines, target=side == "target"))
        opened = types.SimpleNamespace(
            vocabulary=vocabulary,
            token_pairs=lambda split: token_files.TokenPairs(
                *(
                    token_files.TokenFile.open(tmp_path / f"tokens.{side}")
                    for side in text.SIDES
                )
            ),
        )
        text.spell_training_text(
            opened, directory=tmp_path, is_shuffled=task.shuffles_training_text
        )
        sides = [
            text.join(vocabulary, text.read_lines(tmp_path / f"train.{side}"))
            for side in text.SIDES
        ]
        written = list(zip(*sides, strict=True))
        assert sorted(written) == sorted(pairs)
        assert (written == pairs) == (task is MULTI30K)

    def test_split_alternates_lines_between_the_two_sets(self) -> None:
        split = TATOEBA.split(["a", "b", "c"])
        assert split == {"valid": ["a", "c"], "test": ["b"]}


class TestCheckpoints:
    CHECKPOINTS = tuple(
        Checkpoint(path=f"c{step}", step=step, elapsed_seconds=elapsed)
        for step, elapsed in [(1000, 99.0), (250, 30.0), (500, 60.0), (750, 60.5)]
    )

    def test_the_newest_in_time_are_chosen_oldest_first(self) -> None:
        chosen = clock.choose_checkpoints(self.CHECKPOINTS, until_seconds=60.0, count=2)
        assert [c.step for c in chosen] == [250, 500]
        chosen = clock.choose_checkpoints(
            self.CHECKPOINTS, until_seconds=100.0, count=3
        )
        assert [c.step for c in chosen] == [500, 750, 1000]

    @pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
    def test_a_run_has_checkpoints_for_the_largest_average(self, task: Task) -> None:
        steps = task.minutes * 6125 / 80  # as on docs/results/peers.md
        [*_, largest] = SYSTEMS[VASWANI_JAX].counts
        assert largest <= steps // task.checkpoint_every < 2 * largest

    @pytest.mark.parametrize("count", [0, 3])
    def test_too_few_checkpoints_in_time_are_an_error(self, count: int) -> None:
        with pytest.raises(
            ValueError, match=f"needs {count} checkpoints within 60 s, found 2"
        ):
            clock.choose_checkpoints(self.CHECKPOINTS, until_seconds=60.0, count=count)

    def test_a_directory_is_as_old_as_its_newest_file(
        self, tmp_path: pathlib.Path
    ) -> None:
        folder = tmp_path / "run/checkpoints"
        for step, newest in ((125, 1060.0), (250, 1120.0)):
            (folder / f"{step}/state").mkdir(parents=True)
            for name, written in (("state/a", newest), ("b", 1010.0)):
                (folder / f"{step}/{name}").touch()
                os.utime(folder / f"{step}/{name}", (written, written))
            for path in (folder / f"{step}/state", folder / f"{step}"):
                os.utime(path, (1020.0, 1020.0))
        (folder / "375.tmp").mkdir()
        paths = SYSTEMS[VASWANI_JAX].find_checkpoints(tmp_path)
        checkpoints = clock.find_checkpoints(paths, start=1000.0)
        assert [(c.step, c.elapsed_seconds) for c in checkpoints] == [
            (125, 60.0),
            (250, 120.0),
        ]


def is_running(pid: int) -> bool:
    """Return True unless a process has ended."""
    try:
        return ") Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


class TestClock:
    def test_a_program_is_stopped_with_its_children(
        self, tmp_path: pathlib.Path
    ) -> None:
        timed = clock.run_for_seconds(
            ["sh", "-c", "sleep 600 & echo $!; wait"],
            seconds=0.5,
            log=tmp_path / "log",
            environment={},
            report=lambda message: None,
        )
        [(elapsed_seconds, pid)] = clock.read_log(tmp_path / "log")
        assert 0 <= elapsed_seconds <= 10
        for _ in range(100):  # The kernel ends the killed child a little later.
            if not is_running(int(pid)):
                break
            time.sleep(0.05)
        assert not is_running(int(pid))
        assert timed.load.cores == os.cpu_count()
        assert not clock.session_file(tmp_path / "log").exists()

    def test_a_program_that_outlived_its_clock_is_refused(
        self, tmp_path: pathlib.Path
    ) -> None:
        log = tmp_path / "training.log"
        program = subprocess.Popen(["sleep", "600"], start_new_session=True)
        try:
            clock.session_file(log).write_text(str(program.pid))
            with pytest.raises(ValueError, match=f"processes {program.pid} of an earl"):
                clock.check_ended(log)
        finally:
            program.kill()
            program.wait()
        clock.check_ended(log)

    def test_a_program_that_ends_early_is_an_error(
        self, tmp_path: pathlib.Path
    ) -> None:
        with pytest.raises(RuntimeError, match="ended with 3 after"):
            clock.run_for_seconds(
                ["sh", "-c", "exit 3"],
                seconds=600,
                log=tmp_path / "log",
                environment={},
            )

    def test_only_a_line_feed_ends_a_line_of_a_log(
        self, tmp_path: pathlib.Path
    ) -> None:
        log = tmp_path / "log"
        log.write_text("1.50\ta\u2028b\n2.00\tc\x0cd\n", encoding="utf-8")
        assert clock.read_log(log) == [(1.5, "a\u2028b"), (2.0, "c\x0cd")]
        log.write_text("", encoding="utf-8")
        assert clock.read_log(log) == []

    def test_the_load_is_the_cpu_time_of_other_processes(self) -> None:
        quiet = Sample(
            elapsed_seconds=0, busy_seconds=5, stolen_seconds=0, run_seconds=0
        )
        minute_later = Sample(
            elapsed_seconds=60, busy_seconds=125, stolen_seconds=1, run_seconds=100
        )
        load = clock.measure_load([quiet, minute_later], cores=2)
        assert load.other_seconds == 20
        assert load.share == pytest.approx((20 + 1) / 120)
        assert load.worst_share == load.share
        assert load.is_disturbed
        alone = Sample(
            elapsed_seconds=60, busy_seconds=105, stolen_seconds=0, run_seconds=99
        )
        assert not clock.measure_load([quiet, alone], cores=2).is_disturbed

    def test_the_speed_is_that_of_a_product_of_matrices(self) -> None:
        matrix = np.ones((1024, 1024), np.float32)
        begin = time.perf_counter()
        matrix @ matrix
        slowest = 2 * 1024**3 / (time.perf_counter() - begin) / 1e9
        assert clock.measure_gflops(seconds=0.1) > slowest / 20


LOGS = {
    VASWANI_JAX: (
        "step 1,250 of 1,000,000  loss 2.345  perplexity 5.10  lr 2.00e-03  "
        "5,432 target tokens/s  left 10 h 2 min",
        (1250, 2.345, 5432, 0.002),
    ),
    "joeynmt": (
        "2026-11-26 21:30:00,000 - INFO - joeynmt.training - Epoch   1, "
        "Step:     1250, Batch Loss:     2.345000, Batch Acc: 0.500000, "
        "Tokens per Sec:     5432, Lr: 0.002000",
        (1250, 2.345, 5432, 0.002),
    ),
    "marian": (
        "[2026-11-26 21:17:28] Ep. 1 : Up. 1250 : Sen. 1,370 : Cost 2.34500000 : "
        "Time 61.97s : 5432.34 words/s : gNorm 3.0880 : L.r. 2.0000e-03",
        (1250, 2.345, 5432.34, 0.002),
    ),
    "eole": (
        "[2026-11-26 21:17:28,000 INFO] Step  1250/10000000; acc: 50.0; ppl: 10.43; "
        "xent: 2.34; aux: 0.000; mtp: 0.000; attn_ent: 0.000; lr: 2.00e-03; sents: "
        "   5000; bsz: 3500/3800/270; 5000/5432 tok/s;     62 sec;",
        (1250, 2.34, 5432, 0.002),
    ),
}


class TestLogs:
    @pytest.mark.parametrize("name", LOGS)
    def test_step_loss_and_rates_are_read(self, name: str) -> None:
        line, expected = LOGS[name]
        [point] = SYSTEMS[name].parse([(7.5, line), (8.0, "another line")])
        rates = (point.tokens_per_second, point.learning_rate)
        assert (point.step, point.loss, *rates) == expected
        assert point.elapsed_seconds == 7.5

    def test_counts_become_tokens_per_second_since_the_last_line(self) -> None:
        values = {"loss": 2, "learning_rate": 0.002}
        lines = [
            (
                elapsed,
                f"PROGRESS {json.dumps({**values, 'step': n, 'target_tokens': n})}",
            )
            for elapsed, n in ((10.0, 1000), (30.0, 2000))
        ]
        points = SYSTEMS["transformers"].parse(lines)
        assert [point.tokens_per_second for point in points] == [100.0, 50.0]
        assert {point.learning_rate for point in points} == {0.002}


class TestSettings:
    """What the page says of a worker's settings is what the worker passes on."""

    def test_the_recipe_as_it_stands_is_the_preset(self) -> None:
        standing = [run for run in kept_runs() if "as it stands" in run["settings"]]
        assert standing
        for run in standing:
            preset = vaswani_jax.load_config(TASKS[run["task"]].preset)
            optimizer = dataclasses.asdict(preset.optimizer)
            assert run["setup"]["config"]["optimizer"] == optimizer

    @pytest.mark.parametrize(
        ("name", "worker", "rate", "warmup"),
        [
            ("joeynmt", joeynmt_worker, "learning_rate", "learning_rate_warmup"),
            ("transformers", transformers_worker, "learning_rate", "warmup_steps"),
            ("eole", eole_worker, "learning_rate", "warmup_steps"),
            ("marian", marian_worker, "learn-rate", "lr-warmup"),
        ],
    )
    def test_their_rates_are_those_of_the_worker(
        self, name: str, worker: types.ModuleType, rate: str, warmup: str
    ) -> None:
        assert list(worker.SETTINGS) == list(SYSTEMS[name].settings)
        for key, setting in SYSTEMS[name].settings.items():
            options = worker.SETTINGS[key]
            assert options[warmup] == setting.warmup_steps
            # EOLE multiplies its rate by d_model**-0.5 and by warmup**-0.5.
            factor = (128 * options[warmup]) ** -0.5 if name == "eole" else 1
            assert options[rate] * factor == pytest.approx(setting.peak_rate, rel=1e-3)

    def test_eoles_search_gets_what_its_checkpoints_lack(self) -> None:
        torch = pytest.importorskip("torch")
        embedding = torch.arange(6.0).reshape(3, 2)
        layer = "encoder.transformer_layers.0.self_attn.final_linear"
        decoder = layer.replace("encoder", "decoder")
        parameters = {
            "src_emb.embeddings.weight": embedding,
            f"{layer}.weight": torch.ones(4, 4),
            f"{decoder}.weight": torch.ones(4, 4),
            f"{decoder}.bias": torch.ones(4),
        }
        complete = eole_worker.add_missing(parameters)
        assert complete.keys() - parameters.keys() == {
            f"{layer}.bias",
            *eole_worker.TIED,
        }
        assert not complete[f"{layer}.bias"].any()
        assert complete[f"{decoder}.bias"].all()
        for name in eole_worker.TIED:
            assert torch.equal(complete[name], embedding)

    def test_ours_are_those_of_the_recipe(self) -> None:
        [setting] = SYSTEMS[VASWANI_JAX].settings.values()
        settings = vaswani_jax.load_config(MULTI30K.preset)
        learning_rate = optimizer.learning_rate(settings)
        for step in (125, 1000, 8000):
            expected = float(learning_rate(step - 1))
            assert setting.learning_rate(step) == pytest.approx(expected, rel=1e-3)

    def test_a_logged_rate_of_another_schedule_is_found(self) -> None:
        setting = Setting("", peak_rate=0.005, warmup_steps=2000)
        points = [
            Progress(0, step, 2.0, 5000, learning_rate)
            for step, learning_rate in ((25, 1e-6), (1000, 0.0025), (8000, 0.0025))
        ]
        assert not setting.find_wrong_rate(points)
        # JoeyNMT ignores a setting of an unknown name: the warm-up would be 10,000.
        wrong = dataclasses.replace(points[1], learning_rate=0.0005)
        assert "0.0005 at update 1,000" in setting.find_wrong_rate([*points, wrong])


@pytest.fixture
def joeynmt_calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list]:
    """The calls of a stand-in for JoeyNMT, whose search copies each line."""
    torch = pytest.importorskip("torch")
    calls: dict[str, list] = {"load_data": [], "predict": []}

    def build_model(settings: dict, **vocabularies: object):
        model = torch.nn.Module()
        model.decoder = torch.nn.Module()
        model.decoder.output_layer = torch.nn.Linear(4, 7, bias=False)
        return model

    def load_data(data: dict, datasets: list[str]) -> tuple:
        calls["load_data"].append(data)
        lines = text.read_lines(pathlib.Path(f"{data['dev']}.source"))
        return ["source"], ["target"], None, lines, None

    def predict(*, model, data, compute_loss, args, **_: object) -> tuple:
        states = torch.arange(24.0).reshape(2, 3, 4)
        logits = model.decoder.output_layer(states)
        expected = states @ model.decoder.output_layer.weight.T
        call = {"logits": logits, "expected": expected, "compute_loss": compute_loss}
        calls["predict"].append({**call, **args})
        tokens = [[*line.split(), "</s>"] for line in data]
        return {"ppl": math.e}, None, None, tokens, None, None

    parts = {
        "prediction": {"predict": predict},
        "config": {
            "parse_global_args": lambda settings, mode: types.SimpleNamespace(
                data=settings["data"]
            ),
            "parse_test_args": lambda options, mode: options,
        },
        "data": {"load_data": load_data},
        "model": {"build_model": build_model},
    }
    package = types.ModuleType("joeynmt")
    monkeypatch.setitem(sys.modules, "joeynmt", package)
    for name, functions in parts.items():
        module = types.ModuleType(f"joeynmt.{name}")
        vars(module).update(functions)
        setattr(package, name, module)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return calls


class TestJoeyNMT:
    def translate(self, directory: pathlib.Path) -> None:
        """Translate two files with each of two checkpoints, and measure losses."""
        torch = pytest.importorskip("torch")
        for name in ("valid.source", "valid.target", "test.source"):
            text.write_lines(directory / name, ["c d e", "a", "b b"])
        models = []
        for step in (1, 2):
            parameters = {"decoder.output_layer.weight": step * torch.ones(7, 4)}
            torch.save({"model_state": parameters}, directory / f"{step}.ckpt")
            searches = [
                {
                    "source": str(directory / f"{split}.source"),
                    "output": str(directory / f"{split}.{step}.{beam}.subwords"),
                    "beam": beam,
                    "penalty": 1.0,
                }
                for split, beam in (("valid", 1), ("valid", 5), ("test", 5))
            ]
            loss = {
                "source": str(directory / "valid.source"),
                "target": str(directory / "valid.target"),
                "output": str(directory / f"loss.{step}.json"),
            }
            models.append(
                {
                    "checkpoints": [str(directory / f"{step}.ckpt")],
                    "searches": searches,
                    "measure_loss": loss,
                }
            )
        numbers = dict.fromkeys(("batch_tokens", "log_every", "checkpoint_every"), 1)
        joeynmt_worker.translate(
            {
                **numbers,
                "text": str(directory),
                "output": str(directory),
                "settings_name": "recipe",
                "seed": 1,
                "threads": torch.get_num_threads(),
                "batch": 32,
                "longest": 60,
                "models": models,
            }
        )

    def test_outputs_and_losses_are_those_of_the_lines(
        self, tmp_path: pathlib.Path, joeynmt_calls: dict[str, list]
    ) -> None:
        self.translate(tmp_path)
        for path in tmp_path.glob("*.subwords"):
            assert text.read_lines(path) == ["c d e", "a", "b b"]
        record = json.loads((tmp_path / "loss.2.json").read_text())
        assert record == {"loss": 1.0, "parameters": 28}

    def test_a_search_projects_the_last_position_and_a_loss_all(
        self, tmp_path: pathlib.Path, joeynmt_calls: dict[str, list]
    ) -> None:
        torch = pytest.importorskip("torch")
        self.translate(tmp_path)
        is_loss = [call["compute_loss"] for call in joeynmt_calls["predict"]]
        assert is_loss == [False, False, False, True] * 2
        for call in joeynmt_calls["predict"]:
            expected = call["expected"]
            if not call["compute_loss"]:
                expected = expected[:, -1:]
            torch.testing.assert_close(call["logits"], expected)

    def test_a_greedy_search_has_smaller_batches(
        self, tmp_path: pathlib.Path, joeynmt_calls: dict[str, list]
    ) -> None:
        self.translate(tmp_path)
        sizes = [
            (call.get("beam_size"), call["batch_size"])
            for call in joeynmt_calls["predict"]
        ]
        assert sizes == [(1, 8), (5, 32), (5, 32), (None, 32)] * 2

    def test_files_are_read_once(
        self, tmp_path: pathlib.Path, joeynmt_calls: dict[str, list]
    ) -> None:
        self.translate(tmp_path)
        # Two files of sources, and the pairs.
        assert len(joeynmt_calls["load_data"]) == 3


class TestBatches:
    def test_each_pair_comes_once_an_epoch_within_the_tokens(self) -> None:
        lengths = [(1 + n % 17, 1 + n % 23) for n in range(300)]
        batches = transformers_worker.Batches(lengths, tokens=120, seed=1)
        first, second = list(batches), list(batches)
        assert sorted(itertools.chain(*first)) == list(range(300))
        assert first != second
        for batch in first:
            assert len(batch) * max(max(lengths[index]) for index in batch) <= 120


def make_evaluator(
    directory: pathlib.Path, vocabulary: Vocabulary, *, counts: tuple[int, ...]
) -> tuple[evaluation.Evaluator, list[dict]]:
    """Return an evaluator whose outputs are best with 4 checkpoints and alpha 2."""
    references = ["ein hund läuft schnell .", "zwei hunde laufen ."]
    words = {split: references for split in ("valid", "test")}
    prepared = text.Text(directory, vocabulary, words, words, TOKENIZED)
    jobs: list[dict] = []

    def run(job: dict, name: str) -> None:
        jobs.append(job)
        for model in job["models"]:
            for search in model["searches"]:
                is_best = len(model["checkpoints"]) == 4
                is_best &= search["beam"] == 1 or search["penalty"] in (1.0, 2.0)
                lines = references if is_best else ["ein mann läuft .", "zwei ."]
                if is_best and search["penalty"] == 1.0:
                    lines = [references[0], "zwei hunde ."]
                subwords = text.spell(vocabulary, lines, target=True)
                text.write_lines(pathlib.Path(search["output"]), subwords)
            if model["measure_loss"]:
                record = json.dumps({"loss": 2.5, "parameters": 7})
                pathlib.Path(model["measure_loss"]["output"]).write_text(record)

    system = types.SimpleNamespace(counts=counts, title="a peer")
    return evaluation.Evaluator(system, prepared, directory, 10, job={}, run=run), jobs


class TestEvaluator:
    CHECKPOINTS = tuple(
        Checkpoint(path=f"c{n}", step=n, elapsed_seconds=10.0 * n) for n in range(1, 11)
    )

    def test_number_and_penalty_are_the_best_on_the_validation_set(
        self, tmp_path: pathlib.Path, vocabulary: Vocabulary
    ) -> None:
        evaluator, jobs = make_evaluator(tmp_path, vocabulary, counts=(1, 4, 8, 32))
        result = evaluator.evaluate(self.CHECKPOINTS, minutes=1.5)
        assert (result["count"], result["penalty"]) == (4, 2.0)
        assert result["steps"] == [6, 7, 8, 9]
        assert [count for count, _ in result["by_count"]] == [1, 4, 8]
        assert [p for p, _ in result["by_penalty"]] == list(evaluation.PENALTIES)
        assert result["valid"] == result["test"] == pytest.approx(100.0)
        [tested] = jobs[-1]["models"]
        assert tested["checkpoints"] == ["c6", "c7", "c8", "c9"]
        [search] = tested["searches"]
        assert search["source"].endswith("test.source") and search["beam"] == 10
        kept = text.read_lines(tmp_path / result["outputs"]["valid"])
        assert kept == evaluator.text.references["valid"]

    def test_a_system_that_averages_itself_is_evaluated_by_its_newest(
        self, tmp_path: pathlib.Path, vocabulary: Vocabulary
    ) -> None:
        evaluator, _ = make_evaluator(tmp_path, vocabulary, counts=(1,))
        assert evaluator.evaluate(self.CHECKPOINTS, minutes=1)["steps"] == [6]

    def test_no_checkpoint_in_time_is_an_error(
        self, tmp_path: pathlib.Path, vocabulary: Vocabulary
    ) -> None:
        evaluator, _ = make_evaluator(tmp_path, vocabulary, counts=(1,))
        with pytest.raises(ValueError, match=r"no checkpoint within 0\.1 minutes"):
            evaluator.evaluate(self.CHECKPOINTS, minutes=0.1)

    def test_a_missing_line_is_an_error(
        self, tmp_path: pathlib.Path, vocabulary: Vocabulary
    ) -> None:
        evaluator, _ = make_evaluator(tmp_path, vocabulary, counts=(1,))
        evaluator.text.references["valid"] = ["a", "b", "c"]
        with pytest.raises(ValueError, match="wrote 2 lines of 3"):
            evaluator.evaluate(self.CHECKPOINTS, minutes=1)

    def test_outputs_of_unknown_subwords_are_an_error(
        self, tmp_path: pathlib.Path, vocabulary: Vocabulary
    ) -> None:
        evaluator, _ = make_evaluator(tmp_path, vocabulary, counts=(1,))
        write_outputs = evaluator.run

        def run(job: dict, name: str) -> None:
            write_outputs(job, name)
            for model in job["models"]:
                for search in model["searches"]:
                    unknown = ["<unk> <unk> ein", "<unk>"]
                    text.write_lines(pathlib.Path(search["output"]), unknown)

        evaluator = dataclasses.replace(evaluator, run=run)
        with pytest.raises(ValueError, match="a peer wrote little but <unk>"):
            evaluator.evaluate(self.CHECKPOINTS, minutes=1)

    def test_the_curve_averages_no_checkpoints(
        self, tmp_path: pathlib.Path, vocabulary: Vocabulary
    ) -> None:
        evaluator, jobs = make_evaluator(tmp_path, vocabulary, counts=(1,))
        points = evaluator.measure_curve(self.CHECKPOINTS, minutes=16 * 25 / 60)
        assert [point["step"] for point in points] == [2, 5, 7, 10]
        assert [point["minutes"] for point in points] == pytest.approx(
            [20 / 60, 50 / 60, 70 / 60, 100 / 60]
        )
        assert {len(model["checkpoints"]) for model in jobs[0]["models"]} == {1}


REFERENCES = [f"der {n} mann läuft mit einem großen hund weiter" for n in range(60)]


def make_record(system: str, *, seed: int = 1, **changes: object) -> dict:
    """Return the record of a run with one evaluation."""
    return {
        "system": system,
        "title": SYSTEMS[system].title,
        "task": "multi30k",
        "settings_name": next(iter(SYSTEMS[system].settings)),
        "settings": next(iter(SYSTEMS[system].settings.values())).words,
        "text": "1f2e",
        "code": records.fingerprint_code(SYSTEMS[system]),
        "machine": {"processor": "a CPU", "cores": 2},
        "gflops": [150.25, 149.875],
        "seed": seed,
        "minutes": 80,
        "checkpoint_every": 125,
        "most_lines": None,
        "is_trial": False,
        "started": "2026-12-01T10:00:00+00:00",
        "commit": "abc",
        "load": {"share": 0.004},
        "is_disturbed": False,
        "progress": [
            {
                "elapsed_seconds": 60,
                "step": 125,
                "loss": 3.0,
                "tokens_per_second": 4000.0,
            }
        ],
        "checkpoints": [{"path": "c", "step": 8000, "elapsed_seconds": 4790.0}],
        "curve": [{"minutes": 5, "step": 500, "loss": 3.0, "bleu": 12.0}],
        "evaluations": [
            {
                "minutes": 80,
                "count": 8,
                "penalty": 1.5,
                "loss": 1.5,
                "parameters": 2_600_000,
                "newest_minutes": 78.5,
                "outputs": {"valid": "valid.txt", "test": "test.txt"},
            }
        ],
        "setup": {},
        **changes,
    }


@pytest.fixture(scope="module")
def content() -> dict:
    """Ours has every line right, one peer few, the other all but one."""
    wrong = "eine frau läuft mit einem hund"
    lines = {
        f"{VASWANI_JAX}-recipe-1": REFERENCES,
        "marian-published-1": [wrong] * 50 + REFERENCES[50:],
        "eole-published-1": [wrong, *REFERENCES[1:]],
    }
    runs = {key: make_record(key.split("-")[0]) for key in lines}
    references = {split: REFERENCES for split in ("valid", "test")}

    def outputs(key: str, index: int, split: str) -> list[str]:
        assert index == 0
        return lines[key]

    return {
        "runs": runs,
        "choices": {
            f"marian-{name}-1": make_record(
                "marian",
                settings_name=name,
                settings=SYSTEMS["marian"].settings[name].words,
                curve=[{"minutes": 10, "step": 900, "loss": loss, "bleu": 5.0}],
            )
            for name, loss in (("published", 4.5), ("multi30k", 3.25))
        },
        "scores": comparison.score_all(runs, outputs, references, data=TOKENIZED),
        "comparisons": comparison.compare_all(
            runs, outputs, references, data=TOKENIZED
        ),
    }


SPEED = {"training": {"seconds": {"rows": [["EOLE", 1.024, 0.8192, 2, 2]]}}}


class TestPage:
    def test_a_difference_is_ours_minus_the_peers(self, content: dict) -> None:
        _, rows = page.tabulate_differences(content, [80])
        by_peer = {row[1]: row[2:] for row in rows}
        assert float(by_peer["Marian, published settings"][0].removesuffix(" *")) > 20
        assert by_peer["Marian, published settings"][0].endswith(" *")
        assert float(by_peer["EOLE, published settings"][0]) > 0

    def test_a_slower_machine_of_a_peer_is_marked_and_does_not_count(
        self, content: dict
    ) -> None:
        def with_changes(**changes: object) -> dict:
            eole = {**content["runs"]["eole-published-1"], **changes}
            return {**content, "runs": {**content["runs"], "eole-published-1": eole}}

        for gflops, is_disturbed, count in (
            (120.0, False, 2),
            (140.0, False, 4),
            (240.0, False, 4),
            (240.0, True, 2),
        ):
            changed = with_changes(gflops=[gflops] * 2, is_disturbed=is_disturbed)
            _, rows = page.tabulate_differences(changed, [80])
            [cells] = [row[2:] for row in rows if row[1].startswith("EOLE")]
            assert [cell.endswith(" ‡") for cell in cells] == [count == 2] * 2
            summary = page.summarize_differences(changed)
            assert f"Ours is ahead in {count} of {count} comparisons" in summary

    def test_a_comparison_that_favours_ours_counts_if_ours_is_behind(
        self, content: dict
    ) -> None:
        eole = {**content["runs"]["eole-published-1"], "is_disturbed": True}
        runs = {**content["runs"], "eole-published-1": eole}
        behind = [
            {**entry, "difference": -0.5}
            if entry["peer"] == "eole-published-1"
            else entry
            for entry in content["comparisons"]
        ]
        changed = {**content, "runs": runs, "comparisons": behind}
        summary = page.summarize_differences(changed)
        assert "Ours is ahead in 2 of 4 comparisons" in summary

    def test_values_are_corrected_for_the_number_of_peers(self, content: dict) -> None:
        [strong] = [
            entry
            for entry in content["comparisons"]
            if entry["peer"] == "marian-published-1" and entry["split"] == "test"
        ]
        assert strong["corrected_p_value"] == pytest.approx(2 * strong["p_value"])

    def test_the_page_has_scores_with_intervals(self, content: dict) -> None:
        written = page.render({"multi30k": content}, speed=SPEED)
        assert "| vaswani_jax, seed 1 | 100.00 ± 0.00 | 100.00 ± 0.00 |" in written
        assert "multi-bleu|tok:as-given" in written
        assert (
            "80 minutes: Ours is ahead in 4 of 4 comparisons, significantly in 2"
            in written
        )
        setting = SYSTEMS["marian"].settings["multi30k"].words
        assert f"| Marian | {setting} | multi30k * | 900 | 3.250 |" in written
        assert "trial" not in written and "†" not in written

    def test_the_settings_are_said_to_be_those_of_multi30k(self, content: dict) -> None:
        pages = {
            names: " ".join(
                page.render(dict.fromkeys(names, content), speed=SPEED).split()
            )
            for names in (("multi30k",), ("tatoeba",), ("multi30k", "tatoeba"))
        }
        alone = pages.pop(("multi30k",))
        assert "on val of [this text](multi30k.md)" in alone
        assert "published for this model and text with another" in alone
        assert "829" not in alone
        for written in pages.values():
            assert "on val of [Multi30k](multi30k.md)" in written
            assert "published for this model on Multi30k with another" in written
            assert "odd and the even lines of dev, 829 each" in written

    def test_its_command_names_each_kept_run(self, tmp_path: pathlib.Path) -> None:
        parser = quality_against_peers.make_parser()
        for run in kept_runs():
            command = (
                page.COMMAND.format(task=run["task"])
                .replace("SYSTEM", run["system"])
                .replace("SETTINGS", run["settings_name"])
                .replace("SEED", str(run["seed"]))
                .replace("DIR", str(tmp_path))
            )
            arguments = parser.parse_args(command.split()[3:])
            [named] = quality_against_peers.list_runs(parser, arguments)
            assert named.task.name == run["task"]
            assert named.system.name == run["system"]
            assert (named.settings_name, named.seed) == (
                run["settings_name"],
                run["seed"],
            )

    def test_the_introduction_is_that_of_the_docs(self, content: dict) -> None:
        contents = {"multi30k": content, "tatoeba": content}
        [introduction, *_] = page.render(contents, speed=SPEED).split("\n## ")
        docs = (clock.ROOT / "docs/results/peers.md").read_text(encoding="utf-8")
        assert " ".join(docs.split()).startswith(" ".join(introduction.split()))

    def test_runs_have_logged_and_expected_tokens_per_second(
        self, content: dict
    ) -> None:
        columns, rows = page.tabulate_runs(content, speed=SPEED)
        [row] = [
            dict(zip(columns, row, strict=True))
            for row in rows
            if "EOLE, published settings" in row
        ]
        assert (row["target tokens/s"], row["expected tokens/s"]) == ("4,000", "5,000")
        assert row["newest checkpoint, min"] == "78.5"
        assert row["GFLOP/s"] == "150, 150"

    def test_the_list_of_settings_has_the_padding_of_joeynmts_batches(
        self, content: dict
    ) -> None:
        assert "padding of pairs" not in page.format_settings(content)
        runs = {**content["runs"], "joeynmt-published-1": make_record("joeynmt")}
        *others, line = page.format_settings({"runs": runs}).splitlines()
        assert len(others) == 3 and line.startswith("- JoeyNMT: pre-norm")
        assert line.endswith("hold less than half of the others' tokens.")

    def test_every_system_has_an_expected_rate(self) -> None:
        speed = json.loads(page.SPEED.read_text())
        for system in SYSTEMS.values():
            assert comparison.estimate_tokens_per_second(system.speed_name, speed)

    def test_the_page_and_its_json_are_as_those_of_docs(
        self, content: dict, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        contents = {"multi30k": content, "tatoeba": content}
        measured = page.to_measurements(contents, speed=SPEED)
        records.write_json(tmp_path / "peers.json", measured)
        (tmp_path / "peers.md").write_text(page.render(contents, speed=SPEED))
        monkeypatch.setattr(test_figures, "RESULTS", tmp_path)
        test_figures.test_a_page_links_to_its_json("peers")
        test_figures.test_every_table_of_a_page_is_that_of_its_json("peers")
        test_figures.test_every_figure_of_a_page_is_in_its_json("peers")
        test_figures.test_a_page_names_command_hardware_and_date_of_every_measurement(
            "peers"
        )

    def test_seeds_of_ours_differ_in_nothing_else(self) -> None:
        runs = [
            make_record(VASWANI_JAX, seed=n, setup={"config": {"seed": n, "beta2": b}})
            for n, b in ((1, 0.98), (2, 0.98), (3, 0.997))
        ]
        page.check_equal_settings(runs[:2])
        with pytest.raises(ValueError, match="seeds 1 and 3 of ours differ in beta2"):
            page.check_equal_settings(runs)
        # A commit of documents alone is none.
        page.check_equal_settings([runs[0], {**runs[1], "commit": "def"}])
        with pytest.raises(ValueError, match="differ in code"):
            page.check_equal_settings([runs[0], {**runs[1], "code": "def"}])

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("minutes", 40),
            ("text", "3d4c"),
            ("machine", {"processor": "a CPU", "cores": 8}),
        ],
    )
    def test_runs_of_other_texts_and_machines_are_refused(
        self, name: str, value: object
    ) -> None:
        runs = {"a": make_record(VASWANI_JAX), "b": make_record("eole")}
        page.check_comparable(runs)
        with pytest.raises(ValueError, match=f"b and a differ in {name}"):
            page.check_comparable({**runs, "b": {**runs["b"], name: value}})
        if name == "machine":
            both = {key: {**run, name: value} for key, run in runs.items()}
            with pytest.raises(ValueError, match="a had 8 cores"):
                page.check_comparable(both)

    def test_trials_and_disturbed_runs_are_marked(self, content: dict) -> None:
        marked = make_record("eole", is_trial=True, is_disturbed=True)
        runs = {**content["runs"], "eole-published-1": marked}
        written = page.render({"multi30k": {**content, "runs": runs}}, speed=SPEED)
        assert written.startswith("**A trial")
        assert "| EOLE, published settings† |" in written and "Disturbed" in written

    def test_runs_of_other_workdirs_stay_on_the_page(
        self, tmp_path: pathlib.Path
    ) -> None:
        text = types.SimpleNamespace(
            references={split: REFERENCES for split in ("valid", "test")},
            data=TOKENIZED,
        )
        written = {}
        for system, outputs in (
            (VASWANI_JAX, REFERENCES),
            ("eole", ["eine frau läuft mit einem hund", *REFERENCES[1:]]),
        ):
            directory = tmp_path / f"day_of_{system}" / f"{system}-1"
            directory.mkdir(parents=True)
            record = make_record(system, setup={"text": f"{directory}/train.source"})
            (directory / "record.json").write_text(json.dumps(record))
            for split in ("valid", "test"):
                (directory / f"{split}.txt").write_text("\n".join(outputs) + "\n")
            path = tmp_path / "peers.md"
            page.write(path, task=MULTI30K, text=text, workdir=directory.parent)
            written[system] = path.read_text()
        alone, both = written.values()
        assert "| vaswani_jax, seed 1 | 100.00 ± 0.00" in alone
        assert "Not run: JoeyNMT" in alone and "EOLE, Marian" in alone
        assert "minus" not in alone and "| EOLE, published settings |" not in alone
        # The outputs of the first workdir are compared, though it is not named again.
        assert (
            "| vaswani_jax, seed 1 | 100.00 ± 0.00" in both
            and "| EOLE, published settings |" in both
        )
        assert (
            "| 1 | EOLE, published settings | +" in both and "Not run: JoeyNMT" in both
        )
        kept = records.read_kept(tmp_path / "peers/multi30k")
        assert list(kept) == [f"{VASWANI_JAX}-1", "eole-1"]
        assert kept["eole-1"]["record"]["setup"] == {"text": "train.source"}

    def test_a_run_of_another_machine_or_text_replaces_nothing(
        self, tmp_path: pathlib.Path
    ) -> None:
        references = {split: REFERENCES for split in ("valid", "test")}
        text = types.SimpleNamespace(references=references, data=TOKENIZED)
        path = tmp_path / "peers.md"
        for number, machine in enumerate(
            (make_record("eole")["machine"], {"processor": "a CPU", "cores": 8})
        ):
            directory = tmp_path / f"{number}" / f"{VASWANI_JAX}-1"
            directory.mkdir(parents=True)
            record = make_record(VASWANI_JAX, machine=machine)
            (directory / "record.json").write_text(json.dumps(record))
            for split in ("valid", "test"):
                (directory / f"{split}.txt").write_text("\n".join(REFERENCES) + "\n")
        page.write(path, task=MULTI30K, text=text, workdir=tmp_path / "0")
        kept = tmp_path / f"peers/multi30k/{VASWANI_JAX}-1.json.gz"
        content = kept.read_bytes()
        with pytest.raises(ValueError, match="8 cores"):
            page.write(path, task=MULTI30K, text=text, workdir=tmp_path / "1")
        assert kept.read_bytes() == content
        text.references = {split: REFERENCES[1:] for split in ("valid", "test")}
        with pytest.raises(
            ValueError, match="has 60 outputs of valid, the text has 59"
        ):
            page.write(path, task=MULTI30K, text=text, workdir=tmp_path / "0")

    def test_no_trial_goes_into_the_docs(self, tmp_path: pathlib.Path) -> None:
        for system in (VASWANI_JAX, "eole"):
            (tmp_path / system).mkdir()
            record = make_record(system, is_trial=True)
            (tmp_path / system / "record.json").write_text(json.dumps(record))
        with pytest.raises(ValueError, match="no results"):
            page.write(
                clock.ROOT / "docs/results/peers.md",
                task=MULTI30K,
                text=None,
                workdir=tmp_path,
            )


class TestRecords:
    RUN = records.Run(
        task=MULTI30K,
        system=SYSTEMS["eole"],
        settings_name="published",
        seed=1,
        minutes=80,
        checkpoint_every=125,
        most_lines=None,
    )

    @pytest.mark.parametrize(
        "change", [{"minutes": 4}, {"checkpoint_every": 5}, {"most_lines": 10}]
    )
    def test_less_than_the_task_is_a_trial(self, change: dict[str, int]) -> None:
        assert not self.RUN.is_trial
        assert dataclasses.replace(self.RUN, **change).is_trial

    def test_a_shorter_run_is_evaluated_at_the_same_shares(self) -> None:
        assert dataclasses.replace(self.RUN, minutes=8).evaluation_minutes == [2, 4, 8]

    def test_a_recorded_run_is_not_trained_again(self, tmp_path: pathlib.Path) -> None:
        record = make_record("eole") | {"note": "recorded"}
        self.write(tmp_path, record)
        assert self.complete(self.RUN, tmp_path)["note"] == "recorded"

    def test_a_mismatched_record_is_refused(self, tmp_path: pathlib.Path) -> None:
        self.write(tmp_path, make_record("eole", minutes=4, is_trial=True))
        with pytest.raises(ValueError, match="minutes 4 instead of 80"):
            self.complete(self.RUN, tmp_path)

    @pytest.mark.parametrize("name", ["settings", "text", "code"])
    def test_a_run_of_other_settings_text_or_code_is_refused(
        self, tmp_path: pathlib.Path, name: str
    ) -> None:
        self.write(tmp_path, make_record("eole", **{name: "other"}))
        with pytest.raises(ValueError, match=f"{name} other instead of"):
            self.complete(self.RUN, tmp_path)

    def test_the_settings_with_the_lowest_loss_are_chosen(
        self, tmp_path: pathlib.Path
    ) -> None:
        assert records.choose_settings(SYSTEMS[VASWANI_JAX], tmp_path) == "recipe"
        for name, loss in (("published", 3.0), ("multi30k", 2.5)):
            self.write_choice(tmp_path, name, loss)
        with pytest.raises(ValueError, match="no short run of recipe: run --choose"):
            records.choose_settings(SYSTEMS["eole"], tmp_path)
        self.write_choice(tmp_path, "recipe", 2.75)
        assert records.choose_settings(SYSTEMS["eole"], tmp_path) == "multi30k"
        records.keep(tmp_path, tmp_path / "kept")
        losses = {
            run["settings_name"]: run["curve"][0]["loss"]
            for run in records.read_choices(tmp_path / "kept").values()
        }
        assert losses == {"published": 3.0, "multi30k": 2.5, "recipe": 2.75}

    def test_settings_that_diverged_are_not_chosen(
        self, tmp_path: pathlib.Path
    ) -> None:
        losses = {"published": math.nan, "multi30k": 2.5, "recipe": 2.75}
        for name, loss in losses.items():
            self.write_choice(tmp_path, name, loss)
        assert records.choose_settings(SYSTEMS["eole"], tmp_path) == "multi30k"
        records.keep(tmp_path, tmp_path / "kept")
        choices = records.read_choices(tmp_path / "kept")
        _, rows = page.tabulate_choices({"choices": choices})
        assert rows[0][2] == "multi30k *"

    def test_a_training_with_a_wrong_rate_is_refused_and_kept(
        self, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rates = ["2.00e-03", "5.00e-03"]
        commands = []

        def run_for_seconds(
            command: list[str], *, log: pathlib.Path, **_: object
        ) -> clock.TimedRun:
            commands.append(command)
            line = LOGS[VASWANI_JAX][0].replace("2.00e-03", rates[len(commands) - 1])
            log.write_text(f"7.50\t{line}\n")
            (log.parent / "settings.json").write_text("{}")
            (log.parent / "run/checkpoints/1250").mkdir(parents=True)
            samples = [Sample(seconds, 0, 0, 0) for seconds in (0, 60)]
            return clock.TimedRun(time.time() - 60, clock.measure_load(samples))

        monkeypatch.setattr(clock, "run_for_seconds", run_for_seconds)
        monkeypatch.setattr(clock, "measure_gflops", lambda: 150.0)
        run = dataclasses.replace(
            self.RUN, system=SYSTEMS[VASWANI_JAX], settings_name="recipe"
        )
        line = tmp_path / "line"
        line.write_text("ein hund\n")
        prepared = types.SimpleNamespace(
            fingerprint="1f2e", directory=tmp_path, path=lambda split, side: line
        )

        def train(directory: str) -> dict:
            return records.complete(
                run,
                prepared,
                data=tmp_path,
                workdir=tmp_path / directory,
                venvs=tmp_path,
                retrain=False,
                train_only=True,
            )

        assert train("right")["progress"][0]["learning_rate"] == 0.002
        for _ in range(2):  # The second call trains nothing.
            with pytest.raises(RuntimeError, match=r"rate 0\.005 .* kept in .*wrong"):
                train("wrong")
        assert len(commands) == 2
        kept = tmp_path / "wrong" / run.key
        assert (kept / records.TRAINING).exists()
        assert (kept / "run/checkpoints/1250").exists()

    def write_choice(self, workdir: pathlib.Path, name: str, loss: float) -> None:
        directory = workdir / records.CHOICE / f"eole-{name}-1"
        directory.mkdir(parents=True)
        curve = [{"minutes": 10, "step": 900, "loss": loss, "bleu": 5.0}]
        record = make_record("eole", settings_name=name, curve=curve, is_trial=True)
        (directory / records.RECORD).write_text(json.dumps(record))

    def write(self, workdir: pathlib.Path, record: dict) -> None:
        (workdir / self.RUN.key).mkdir()
        for name in (records.TRAINING, records.RECORD):
            (workdir / self.RUN.key / name).write_text(json.dumps(record))

    def complete(self, run: records.Run, workdir: pathlib.Path) -> dict:
        paths = {"data": workdir, "workdir": workdir, "venvs": workdir}
        text = types.SimpleNamespace(fingerprint="1f2e")
        return records.complete(run, text, **paths, retrain=False)
