"""Write docs/results/peers.md, its pictures and its JSON from the records of runs."""

import json
import pathlib
import re
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from tests.benchmarks.quality import comparison, records, systems
from tests.benchmarks.quality.clock import DISTURBED_SHARE, ROOT
from tests.benchmarks.quality.systems import SYSTEMS
from tests.benchmarks.quality.tasks import MULTI30K, SPLITS, TASKS, Task
from tests.benchmarks.quality.text import Text

COMMAND = (
    "python -m tests.benchmarks.quality_against_peers --task={task} --data=TEXT "
    "--workdir=DIR --venvs=DIR --systems=SYSTEM --settings=SETTINGS --seeds=SEED "
    "--page=docs/results/peers.md"
)
HARDWARE = "2 CPU cores"
NUM_CORES = 2
# How many times as fast as a peer's our machine may have been.
FAVOURED = 1.15
SPEED = ROOT / "docs/results/speed.json"
SET_NAMES = {"valid": "val", "test": "test"}
INTRODUCTION = """\
# Peers at equal minutes

Each system trains for the same wall time, alone on 2 CPU cores, with the same subwords
and the model size of [Revisit-MMT's](multi30k.md). The clock begins with the process.
Not all machines were equally fast: the last table has their speed.
Our settings were chosen on val of [{text}](multi30k.md): the
[warm-up](multi30k.md#warm-up) after the peers had run, all others before. A peer has
settings that it publishes, the learning rates published for {model} with
another toolkit and twice the batch, or ours with a longer warm-up, as the list below
the last table says. Dropout of one rate has different places: JoeyNMT also drops
attention weights and, as EOLE does, what follows the ReLU. Ours alone validates within
its minutes. Each peer has one seed; no test here says how another seed would score.

At each time the parameters of the newest checkpoints are averaged; Marian smooths its
own. All systems search with the same beam. One procedure chooses the number of
checkpoints and the length penalty on val, so scores on val are optimistic.
[peers.json](peers.json) has the tables, and `peers/` beside it all figures, settings,
commits and outputs.
"""
# Runs on another text have the settings chosen and published for Multi30k, too.
ALONE = {"text": "this text", "model": "this model and text"}
WITH_OTHERS = {"text": "Multi30k", "model": "this model on Multi30k"}


def write(path: pathlib.Path, *, task: Task, text: Text, workdir: pathlib.Path) -> None:
    """Compare all runs, and write the page, its pictures and its JSON.

    The complete runs of the workdir are kept in the page's folder, where those of other
    days and workdirs lie.

    Raises:
        ValueError: No run is complete; runs differ in length, text or machine; those
            of ours differ in more than the seed; or trials would go into docs/.
    """
    folder = path.with_suffix("")
    new_runs = records.all_records(workdir)
    is_trial = any(run["is_trial"] for run in new_runs.values())
    if is_trial and path.resolve().is_relative_to(ROOT / "docs"):
        raise ValueError(f"{workdir} has trials, which are no results for {path}")
    old_runs = {
        key: entry["record"]
        for key, entry in records.read_kept(folder / task.name).items()
    }
    runs = old_runs | {
        key: records.without_directories(run) for key, run in new_runs.items()
    }
    if not runs:
        raise ValueError(f"{workdir} has no complete run, nor has {folder / task.name}")
    # Refuse a run before it replaces a kept one.
    check_comparable(runs)
    our_keys, _ = comparison.split_keys(runs)
    check_equal_settings([runs[key] for key in our_keys])
    records.keep(workdir, folder / task.name)
    kept = records.read_kept(folder / task.name)
    runs = {key: entry["record"] for key, entry in kept.items()}

    def outputs(key: str, index: int, split: str) -> list[str]:
        lines = list(kept[key]["outputs"][index][split])
        if len(lines) != len(text.references[split]):
            raise ValueError(
                f"{key} has {len(lines):,} outputs of {split}, the text has "
                f"{len(text.references[split]):,} references"
            )
        return lines

    records.write_json(
        folder / f"{task.name}.json",
        {
            "scores": comparison.score_all(
                runs, outputs, text.references, data=text.data
            ),
            "comparisons": comparison.compare_all(
                runs, outputs, text.references, data=text.data
            ),
        },
    )
    contents = {
        file.stem: _read_content(file) for file in sorted(folder.glob("*.json"))
    }
    speed = json.loads(SPEED.read_text())
    records.write_json(
        path.with_suffix(".json"), to_measurements(contents, speed=speed)
    )
    path.write_text(render(contents, speed=speed), encoding="utf-8")
    draw(contents[task.name], path.with_name(f"{path.stem}_{task.name}.png"))


def _read_content(path: pathlib.Path) -> dict[str, Any]:
    """Return the scores and comparisons of a task, with the records of its runs."""
    kept = records.read_kept(path.with_suffix(""))
    runs = {key: entry["record"] for key, entry in kept.items()}
    choices = records.read_choices(path.with_suffix(""))
    return {"runs": runs, "choices": choices, **json.loads(path.read_text())}


def check_comparable(runs: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse runs of different lengths, texts or machines.

    Raises:
        ValueError: Two runs differ, or their machine has another number of cores than
            the page says.
    """
    first_key, first = next(iter(runs.items()))
    for key, run in runs.items():
        for name in ("minutes", "most_lines", "text", "machine"):
            if run[name] != first[name]:
                raise ValueError(
                    f"{key} and {first_key} differ in {name}: {run[name]} and "
                    f"{first[name]}"
                )
    if first["machine"]["cores"] != NUM_CORES:
        raise ValueError(
            f"{first_key} had {first['machine']['cores']} cores; the page is of "
            f"{NUM_CORES}"
        )


def check_equal_settings(runs: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs of ours whose settings differ in more than the seed.

    Raises:
        ValueError: Two runs differ.
    """
    for run in runs[1:]:
        first, other = (
            {**r["setup"].get("config", {}), "seed": 0, "code": r["code"]}
            for r in (runs[0], run)
        )
        names = sorted(n for n in first | other if first.get(n) != other.get(n))
        if names:
            raise ValueError(
                f"seeds {runs[0]['seed']} and {run['seed']} of ours differ in "
                f"{', '.join(names)}"
            )


def to_measurements(
    contents: Mapping[str, Mapping[str, Any]], *, speed: Any
) -> dict[str, dict[str, Any]]:
    """Return the measurements of all tasks, in the form of docs/results/*.json."""
    measurements = {}
    for name, content in contents.items():
        command = COMMAND.format(task=name)
        common = {"commands": [command], "hardware": HARDWARE, "date": dates(content)}
        tables = tabulate(content, speed=speed)
        for table, description in (
            ("scores", "BLEU with the 95 % interval of a bootstrap"),
            ("differences", "BLEU of ours minus the peer's; a star: p < 0.05"),
            ("choices", "Val loss after the short run with each settings"),
            ("runs", "Updates, rates, choices and loads"),
        ):
            columns, rows = tables[table]
            if not rows:
                continue
            measurements[f"{name}_{table}"] = {
                "what": f"{TASKS[name].title}: {description}",
                **common,
                "columns": columns,
                "rows": rows,
            }
        measurements[f"{name}_runs"]["settings"] = format_settings(content).splitlines()
    return measurements


def dates(content: Mapping[str, Any]) -> str:
    """Return the days of the first and the last run."""
    days = sorted(run["started"][:10] for run in content["runs"].values())
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


Table = tuple[list[str], list[list[str]]]


def tabulate(content: Mapping[str, Any], *, speed: Any) -> dict[str, Table]:
    """Return the columns and the rows of the tables of a task."""
    minutes = sorted({score["minutes"] for score in content["scores"]})
    return {
        "scores": tabulate_scores(content, minutes),
        "differences": tabulate_differences(content, minutes),
        "choices": tabulate_choices(content),
        "runs": tabulate_runs(content, speed=speed),
    }


def render(contents: Mapping[str, Mapping[str, Any]], *, speed: Any) -> str:
    """Return the page."""
    runs = [run for content in contents.values() for run in content["runs"].values()]
    is_alone = list(contents) == [MULTI30K.name]
    parts = [INTRODUCTION.format_map(ALONE if is_alone else WITH_OTHERS)]
    if any(run["is_trial"] for run in runs):
        parts.insert(0, "**A trial: these figures are no results.**\n")
    for name, task in TASKS.items():
        if name in contents:
            parts += _render_task(task, contents[name], speed=speed)
    return "\n".join(parts)


def _render_task(task: Task, content: Mapping[str, Any], *, speed: Any) -> list[str]:
    tables = {
        name: _format_table(*table)
        for name, table in tabulate(content, speed=speed).items()
    }
    signatures = sorted({score["signature"] for score in content["scores"]})
    disturbed = [key for key, run in content["runs"].items() if run["is_disturbed"]]
    parts = [
        f"## {task.title}\n",
        *([f"{task.note}\n"] if task.note else []),
        f"Scores with the 95 % intervals of a bootstrap (`{'`, `'.join(signatures)}`, "
        f"beam {task.beam}):\n",
        tables["scores"],
        f"![Loss, BLEU and training loss over minutes](peers_{task.name}.png)\n",
    ]
    if content["comparisons"]:
        parts += [
            "Ours minus the peer's. A star marks p < 0.05 by approximate "
            "randomisation, corrected for the number of peers by Holm's method. ‡: it "
            "counts below only if ours is behind, as our machine was over "
            f"{100 * (FAVOURED - 1):.0f} % faster than the peer's, or as the peer's "
            "run alone was disturbed.\n",
            tables["differences"],
            summarize_differences(content),
        ]
    if content["choices"]:
        parts += [
            "The settings of each peer, with the val loss after the short run, which "
            "ends before a long warm-up does; the lowest was chosen:\n",
            tables["choices"],
        ]
    parts += [
        "How each system ran. The expected rate is that of an update in "
        "[speed](speed.md), without padding. Each evaluation uses the newest "
        "checkpoint; the table has the minute at which it was written, and how fast "
        "the machine multiplied float32 matrices before and after the run:\n",
        tables["runs"],
        format_settings(content),
    ]
    if missing := find_missing(content):
        parts.append(f"Not run: {', '.join(missing)}.\n")
    if disturbed:
        parts.append(
            f"† Disturbed: other processes took more than {100 * DISTURBED_SHARE:g} % "
            "of the machine during "
            f"{'; '.join(format_label(content['runs'][key]) for key in disturbed)}.\n"
        )
    command = COMMAND.format(task=task.name)
    parts.append(
        f"Measured {dates(content)}:\n\n```console\n$ "
        + re.sub(r" (--(?:data|systems)=)", r" \\\n    \1", command)
        + "\n```\n"
    )
    return parts


def find_missing(content: Mapping[str, Any]) -> list[str]:
    """Return the titles of the systems that have no run."""
    names = {run["system"] for run in content["runs"].values()}
    return [system.title for name, system in SYSTEMS.items() if name not in names]


def format_label(run: Mapping[str, Any]) -> str:
    """Return the name of a run in a table."""
    if run["system"] == systems.VASWANI_JAX:
        return f"{run['title']}, seed {run['seed']}"
    is_only = len(SYSTEMS[run["system"]].settings) == 1
    return run["title"] + ("" if is_only else f", {run['settings_name']} settings")


def tabulate_scores(content: Mapping[str, Any], minutes: Sequence[float]) -> Table:
    """Return the table of scores: a row for each run, a column for a set at a time."""
    cells = {
        (score["run"], score["split"], score["minutes"]): (
            f"{score['score']:.2f} ± {score['half_width']:.2f}"
        )
        for score in content["scores"]
    }
    return (
        ["system", *_columns(minutes)],
        [
            [
                format_label(run) + ("†" if run["is_disturbed"] else ""),
                *(cells[key, split, time] for split in SPLITS for time in minutes),
            ]
            for key, run in content["runs"].items()
        ],
    )


def tabulate_differences(content: Mapping[str, Any], minutes: Sequence[float]) -> Table:
    """Return the table of ours minus the peers'; a star marks significance."""
    rows: dict[tuple[str, str], dict[tuple[str, float], str]] = {}
    for entry in content["comparisons"]:
        star = " *" if entry["is_significant"] else ""
        star += " ‡" if is_favoured(content, entry) else ""
        row = rows.setdefault((entry["run"], entry["peer"]), {})
        row[entry["split"], entry["minutes"]] = f"{entry['difference']:+.2f}{star}"
    runs = content["runs"]
    return (
        ["seed", "peer", *_columns(minutes)],
        [
            [
                str(runs[key]["seed"]),
                format_label(runs[peer]),
                *(row[split, time] for split in SPLITS for time in minutes),
            ]
            for (key, peer), row in rows.items()
        ],
    )


def tabulate_choices(content: Mapping[str, Any]) -> Table:
    """Return the table of the peers' settings; a star marks the chosen ones."""
    choices = sorted(
        content["choices"].values(),
        key=lambda run: (run["title"], records.rank_loss(run["curve"][-1]["loss"])),
    )
    best = {run["title"]: run for run in reversed(choices)}
    return (
        ["system", "settings", "name", "updates", "val loss", "date"],
        [
            [
                run["title"],
                run["settings"],
                run["settings_name"] + (" *" if run is best[run["title"]] else ""),
                f"{run['curve'][-1]['step']:,}",
                f"{run['curve'][-1]['loss']:.3f}",
                run["started"][:10],
            ]
            for run in choices
        ],
    )


def summarize_differences(content: Mapping[str, Any]) -> str:
    """Return a sentence for each time that counts the comparisons won by ours."""
    entries = [
        entry
        for entry in content["comparisons"]
        if entry["difference"] < 0 or not is_favoured(content, entry)
    ]
    times = sorted({entry["minutes"] for entry in entries})
    return "".join(
        f"- {time:g} minutes: "
        + _count_differences([e for e in entries if e["minutes"] == time])
        for time in times
    )


def is_favoured(content: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return whether our run had a clearly faster machine, or a quieter one."""
    ours, peer = (content["runs"][entry[name]] for name in ("run", "peer"))
    if peer["is_disturbed"] and not ours["is_disturbed"]:
        return True
    return statistics.fmean(ours["gflops"]) > FAVOURED * statistics.fmean(
        peer["gflops"]
    )


def _count_differences(entries: Sequence[Mapping[str, Any]]) -> str:
    better = [entry for entry in entries if entry["difference"] > 0]
    significantly_better = [entry for entry in better if entry["is_significant"]]
    significantly_worse = [
        entry
        for entry in entries
        if entry["difference"] < 0 and entry["is_significant"]
    ]
    return (
        f"Ours is ahead in {len(better)} of {len(entries)} comparisons, significantly "
        f"in {len(significantly_better)}; significantly behind in "
        f"{len(significantly_worse)}.\n"
    )


def tabulate_runs(content: Mapping[str, Any], *, speed: Any) -> Table:
    """Return the table of updates, rates, choices and loads of all runs."""
    rows = []
    for run in content["runs"].values():
        last = run["evaluations"][-1]
        expected = comparison.estimate_tokens_per_second(
            SYSTEMS[run["system"]].speed_name, speed
        )
        rows.append(
            [
                format_label(run),
                f"{last['parameters']:,}",
                f"{run['checkpoints'][-1]['step']:,}",
                f"{comparison.compute_tokens_per_second(run):,.0f}",
                f"{expected:,.0f}" if expected else "",
                ", ".join(f"{r['newest_minutes']:.1f}" for r in run["evaluations"]),
                ", ".join(f"{r['count']:g}" for r in run["evaluations"]),
                ", ".join(f"{r['penalty']:g}" for r in run["evaluations"]),
                f"{last['loss']:.3f}",
                f"{100 * run['load']['share']:.1f} %",
                ", ".join(f"{gflops:.0f}" for gflops in run["gflops"]),
                run["started"][:10],
                run["commit"],
            ]
        )
    return (
        [
            *("system", "parameters", "updates", "target tokens/s"),
            *("expected tokens/s", "newest checkpoint, min", "checkpoints averaged"),
            *("alpha", "val loss", "other load"),
            *("GFLOP/s", "date", "commit"),
        ],
        rows,
    )


def format_settings(content: Mapping[str, Any]) -> str:
    """Return a line for each system and settings, as its runs have recorded them."""
    lines = {}
    for run in content["runs"].values():
        system = SYSTEMS[run["system"]]
        line = (
            f"- {system.title}: {run['settings']}; "
            f"average: {system.average}; penalty {system.penalty}."
        )
        if system.note:
            line += f" {system.note}"
        lines[system.name, run["settings_name"]] = f"{line}\n"
    return "".join(lines.values())


def _columns(minutes: Sequence[float]) -> list[str]:
    return [f"{SET_NAMES[split]}, {time:g} min" for split in SPLITS for time in minutes]


def _format_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def draw(content: Mapping[str, Any], path: pathlib.Path) -> None:
    """Draw val loss, val BLEU and training loss of all runs over minutes."""
    from vaswani_jax.plots import canvas
    from vaswani_jax.plots.learning_curves import COLOURS, MARKERS

    figure = canvas.new_figure(11.0, 4.0)
    panels = figure.subplots(1, 3)
    for axes, title in zip(
        panels,
        ("val loss (nats)", "val BLEU, greedy", "training loss, as logged"),
        strict=True,
    ):
        axes.set_xlabel("minutes")
        axes.set_title(title, fontsize="medium")
        axes.grid(alpha=0.3)
    for number, run in enumerate(content["runs"].values()):
        style = {
            "color": COLOURS[number % len(COLOURS)],
            "label": format_label(run),
            "linewidth": 1.2,
        }
        marker = {"marker": MARKERS[number % len(MARKERS)], "markersize": 3}
        times = [point["minutes"] for point in run["curve"]]
        for axes, name in zip(panels[:2], ("loss", "bleu"), strict=True):
            values = [point[name] for point in run["curve"]]
            axes.plot(times, values, **style, **marker)
        progress = run["progress"]
        panels[2].plot(
            [point["elapsed_seconds"] / 60 for point in progress],
            [point["loss"] for point in progress],
            **style,
        )
    panels[1].legend(fontsize="x-small")
    canvas.save(figure, path)
