"""Compare translation quality with other toolkits, each trained alone for equal time.

    python -m tests.benchmarks.quality_against_peers --data=TEXT --workdir=DIR \\
        --venvs=DIR --systems=joeynmt

trains JoeyNMT for 80 minutes. It then translates with the checkpoints of the first 20,
40 and 80 minutes, and records the scores. An interrupted evaluation resumes; a recorded
run is kept. Repeat for each system (vaswani_jax with --seeds=1,2,3), in any order, on
any day. A peer with several settings first needs

    python -m tests.benchmarks.quality_against_peers --data=TEXT --workdir=DIR \\
        --venvs=DIR --systems=joeynmt --choose

which trains it for 10 minutes with each of them; the settings with the lowest
validation loss then train for 80 minutes. They are those that the toolkit publishes,
those published for this model and text with another toolkit, and ours with a longer
warm-up. Then

    python -m tests.benchmarks.quality_against_peers --data=TEXT --workdir=DIR \\
        --page=docs/results/peers.md

compares all recorded runs, and writes the page, its pictures and its JSON. It keeps
each run with its outputs in the folder `docs/results/peers/`, so others may follow in
another --workdir.
`--task=tatoeba` trains on Tatoeba, 60 minutes each.

All systems get the same subwords of the same text, and the same time, which begins with
the process. Nothing else may run meanwhile: the load of other processes is recorded;
a high one marks the run. A run whose log has other learning rates than its settings
fails. `--settings=NAME` names settings instead of the chosen ones.
`--train_only` leaves evaluation to a later call, which may share the machine.
`--minutes=10` is a trial that shows whether the loss falls. Use a new --workdir for
each.

`--venvs` is a directory with an environment for each peer, Python 3.11:

    hf      torch==2.13.0 transformers==5.23.0 accelerate
    joey    torch==2.13.0 joeynmt==2.3.0 importlib_metadata
    eole    torch==2.13.0 eole==0.6.4 aiohttp
    marian  pymarian==1.12.42 numpy ctranslate2==4.8.5 pyyaml setuptools
"""

import argparse
import pathlib
import signal
import subprocess
import sys
from typing import Any, NoReturn

from tests.benchmarks.quality import records, tasks, text
from tests.benchmarks.quality.records import Run
from tests.benchmarks.quality.systems import SYSTEMS


def main() -> None:
    """Train and evaluate the named runs, and write the page if its flag is given."""
    parser = make_parser()
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _exit)  # so that the training program is ended, too
    try:
        if arguments.choose:
            _choose(list_runs(parser, arguments), arguments)
        else:
            _complete(list_runs(parser, arguments), arguments)
    except (ValueError, OSError, RuntimeError) as error:
        parser.exit(1, f"{error}\n")
    except subprocess.CalledProcessError as error:
        parser.exit(error.returncode)  # The program has logged the reason.


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--data", type=pathlib.Path, required=True, help="directory of the text")
    add(
        "--workdir",
        type=pathlib.Path,
        required=True,
        help="directory of all runs of a task",
    )
    add(
        "--venvs",
        type=pathlib.Path,
        default=pathlib.Path("~/.cache/peers/venvs"),
        help="directory of the environments",
    )
    add("--task", choices=tasks.TASKS, default=tasks.MULTI30K.name)
    add("--systems", default="", help=f"some of {','.join(SYSTEMS)}")
    add("--settings", help="the settings of the worker; default: see --choose")
    add(
        "--choose",
        action="store_true",
        help="train shortly with each settings of the systems, to choose one",
    )
    add("--seeds", default="1", help="such as 1,2,3")
    add(
        "--minutes",
        type=float,
        help="training time; less than the task's marks a trial",
    )
    add(
        "--checkpoint_every",
        type=int,
        help="updates between checkpoints of ours; other than the task's marks a trial",
    )
    add(
        "--most_lines",
        type=int,
        help="lines of the held-out sets; a number marks a trial",
    )
    add(
        "--train_only",
        action="store_true",
        help="evaluate later, when the machine need not be quiet",
    )
    add(
        "--retrain",
        action="store_true",
        help="delete these runs and train them again",
    )
    add(
        "--page",
        type=pathlib.Path,
        help="keep recorded runs in its folder, and write it",
    )
    return parser


def _exit(number: int, _: object) -> NoReturn:
    sys.exit(128 + number)


def _prepare(arguments: argparse.Namespace) -> text.Text:
    return text.prepare(
        tasks.TASKS[arguments.task],
        data=arguments.data.expanduser(),
        workdir=arguments.workdir.expanduser().resolve(),
        most_lines=arguments.most_lines,
    )


def _complete_run(
    run: Run,
    prepared: text.Text,
    *,
    workdir: pathlib.Path,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    return records.complete(
        run,
        prepared,
        data=arguments.data.expanduser(),
        workdir=workdir,
        venvs=arguments.venvs.expanduser(),
        retrain=arguments.retrain,
        train_only=arguments.train_only,
    )


def _choose(runs: list[Run], arguments: argparse.Namespace) -> None:
    """Complete the short runs, and print the settings of each system that are best."""
    workdir = arguments.workdir.expanduser().resolve()
    prepared = _prepare(arguments)
    for run in runs:
        record = _complete_run(
            run, prepared, workdir=workdir / records.CHOICE, arguments=arguments
        )
        [point] = record["curve"]
        print(f"{run.key}: validation loss {point['loss']:.3f} ({run.setting.words})")
    for system in dict.fromkeys(run.system.name for run in runs):
        chosen = records.choose_settings(SYSTEMS[system], workdir)
        print(f"{system}: {chosen}")


def _complete(runs: list[Run], arguments: argparse.Namespace) -> None:
    """Complete the runs, then write the page."""
    task = tasks.TASKS[arguments.task]
    workdir = arguments.workdir.expanduser().resolve()
    prepared = _prepare(arguments)
    for run in runs:
        record = _complete_run(run, prepared, workdir=workdir, arguments=arguments)
        for evaluation in record["evaluations"]:
            print(
                f"{run.key} at {evaluation['minutes']:g} minutes: valid "
                f"{evaluation['valid']:.2f}, test {evaluation['test']:.2f} "
                f"({evaluation['count']} checkpoints, alpha {evaluation['penalty']:g})"
            )
    if arguments.page:
        from tests.benchmarks.quality import page

        page.write(arguments.page, task=task, text=prepared, workdir=workdir)


def list_runs(
    parser: argparse.ArgumentParser, arguments: argparse.Namespace
) -> list[Run]:
    """Return the runs that the arguments name; end with an error if one is wrong."""
    names = [name for name in arguments.systems.split(",") if name]
    if not names and not arguments.page:
        parser.error("name --systems to run, or a --page to write")
    if unknown := set(names) - set(SYSTEMS):
        parser.error(
            f"--systems has {', '.join(sorted(unknown))}; the systems are "
            f"{', '.join(SYSTEMS)}"
        )
    seeds = arguments.seeds.split(",")
    if not all(seed.isdecimal() for seed in seeds):
        parser.error(f"--seeds must be whole numbers, got {arguments.seeds}")
    task = tasks.TASKS[arguments.task]
    if arguments.choose and (arguments.settings or len(seeds) > 1):
        parser.error(
            "--choose trains each settings once: leave out --settings, --seeds"
        )
    if arguments.choose and arguments.page:
        parser.error("--choose writes no page: leave out --page")
    if arguments.choose and arguments.train_only:
        parser.error("--choose needs validation losses: leave out --train_only")
    usual_minutes = task.choice_minutes if arguments.choose else task.minutes
    minutes = arguments.minutes or usual_minutes
    if minutes <= 0:
        parser.error(f"--minutes must be positive, got {minutes:g}")
    runs = []
    for name in names:
        system = SYSTEMS[name]
        if arguments.choose:
            settings_names = list(system.settings)
        else:
            try:
                chosen = arguments.settings or records.choose_settings(
                    system, arguments.workdir.expanduser()
                )
            except ValueError as error:
                parser.error(str(error))
            settings_names = [chosen]
        if unknown_names := set(settings_names) - set(system.settings):
            parser.error(
                f"--settings={unknown_names.pop()}: {name} has "
                f"{', '.join(system.settings)}"
            )
        runs += [
            Run(
                task=task,
                system=system,
                settings_name=settings_name,
                seed=int(seed),
                minutes=minutes,
                checkpoint_every=arguments.checkpoint_every or task.checkpoint_every,
                most_lines=arguments.most_lines,
                is_choice=arguments.choose,
            )
            for settings_name in settings_names
            for seed in seeds
        ]
    if any(run.is_trial and not run.is_choice for run in runs):
        print("a trial: its figures are no results", file=sys.stderr)
    return runs


if __name__ == "__main__":
    main()
