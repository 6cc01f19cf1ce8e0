"""Print the paper's tables and figures, from the code and from scored runs.

vaswani report --output=runs/report
vaswani report runs/seeds
python -m vaswani_jax.report --output=runs/report
"""

import dataclasses
import json
import logging
import pathlib
import shlex
from collections.abc import Sequence

from absl import flags

from vaswani_jax import api, comparer
from vaswani_jax.cli import path_flags, program
from vaswani_jax.cli.syntax import Syntax
from vaswani_jax.evaluation import comparison_text
from vaswani_jax.paper import (
    attention_figures,
    claims,
    figures,
    model_figures,
    presets,
    scored_runs,
    small_table3,
    table1,
    table4,
    tables,
)
from vaswani_jax.plots import (
    architecture,
    attention_diagram,
    attention_lines,
    canvas,
)

logger = logging.getLogger(__name__)

RUNS = path_flags.define_path_list(
    "runs",
    ["runs", "docs/results"],
    "Directories that hold workdirs, such as one of `vaswani train --seeds`; "
    "docs/results/ has the records of ours.",
)
OUTPUT = path_flags.define_path("output", "runs/report", "Where the report goes.")
LENGTHS = flags.DEFINE_list(
    "lengths",
    ["64", "128", "256", "512", "1024", "2048"],
    "Lengths n of table 1.",
)
KERNEL = flags.DEFINE_integer("kernel", 3, "Kernel width k in table 1.", lower_bound=2)
WINDOW = flags.DEFINE_integer(
    "window", 64, "Neighbourhood r in table 1.", lower_bound=2
)
SENTENCES = flags.DEFINE_integer(
    "sentences", 16, "Sentences that a layer is timed with.", lower_bound=1
)

# What the report depends on, besides --runs.
INPUTS = ("lengths", "kernel", "window", "sentences")


def main() -> None:
    """Print report.md, and write it with its figures and report.json."""
    canvas.require()
    lengths = _lengths()
    systems = presets.systems()
    rows, small = presets.rows("table3"), presets.rows("table3_small")
    output = program.local_path("output", OUTPUT.value)
    runs = _read_runs()
    output.mkdir(parents=True, exist_ok=True)
    costs = table1.measure(
        lengths,
        model=rows["base"].model,
        kernel=KERNEL.value,
        window=WINDOW.value,
        rows=SENTENCES.value,
    )
    figures.draw_table1(costs).savefig(output / "table1.png")
    figures.draw_learning_rates().savefig(output / "learning_rate.png")
    figures.draw_positions().savefig(output / "positions.png")
    head_reading = _read_heads(runs)
    model = model_figures.choose(head_reading.run, base=rows["base"])
    _draw_model(model, output)
    if head_reading.heads is not None:
        _draw_heads(head_reading.heads, output)
    judgements = claims.judge(
        claims.Evidence(
            systems,
            rows,
            small,
            runs,
            costs,
            heads=head_reading.heads,
            head_failures=head_reading.failures,
        )
    )
    sections = {
        "What the paper claims": claims.format_table(judgements),
        "Table 1: what layers cost": (
            f"{table1.format_costs(costs)}\n\n![operations and seconds](table1.png)"
        ),
        "Table 2: translation": tables.table2(systems, runs),
        "Table 3: variations of the base model": tables.table3(rows, runs),
        "Table 3: parameters by matrix, in millions": tables.matrices(rows),
        "Table 3 at the scale of two cores": small_table3.format_table(small, runs),
        "Table 4: constituency parsing": table4.format_table(runs),
        "All scored runs": tables.evaluations(runs),
        "Means of seeds": (
            f"{tables.average_seeds(runs)}\n\n"
            f"{compare_seeds(scored_runs.group_seeds(runs))}"
        ).rstrip(),
        "Section 5.3: the learning rate": (
            f"{tables.learning_rate(rows['base'])}\n\n"
            "![learning rate](learning_rate.png)"
        ),
        "Section 3.5: positional encoding": (
            f"{tables.positions(rows['base'])}\n\n![sinusoids](positions.png)"
        ),
        "Figures 1 and 2: the model": (
            f"{model.note}\n\n"
            "![the model](figure1.png)\n\n![its attention](figure2.png)"
        ),
        "Figures 3 to 5: attention": attention_figures.format_figures(
            [claim for claim in judgements if claim.section == "figures"]
        ),
    }
    body = "\n\n".join(f"## {title}\n\n{text}" for title, text in sections.items())
    origin = tables.origin()
    provenance = tables.provenance(origin)
    text = f"# The paper, from this code\n\n{provenance}\n\n{body}\n"
    (output / "report.md").write_text(text, encoding="utf-8")
    record = {
        "command": _command(),
        **origin,
        "table1": dataclasses.asdict(costs),
        "claims": claims.to_json(judgements),
    }
    (output / "report.json").write_text(
        f"{json.dumps(record, indent=1)}\n", encoding="utf-8"
    )
    print(text)
    logger.info(f"written: {output}/report.md and its figures")


def compare_seeds(groups: Sequence[Sequence[scored_runs.ScoredRun]]) -> str:
    """Return the tests between directories of seeds, from outputs that were kept.

    Args:
        groups: The runs of each directory of seeds, scored on one text.

    Returns:
        For each text that several directories have, their scores and the test of each
        pair, or why they cannot be compared. "" if no text has several.
    """
    systems: dict[tuple[str, str], dict[str, None]] = {}
    for runs in groups:
        if len(runs) > 1 and not runs[0].is_parsing:
            record = runs[0].record
            name = f"{runs[0].workdir.parent}@{record['checkpoint']}"
            key = record["split"], record["references"]
            systems.setdefault(key, {})[name] = None
    texts = []
    for (split, _), names in systems.items():
        if len(names) > 1:
            try:
                comparison = comparer.compare_systems(
                    list(names), split=split, num_lines=0, translate=False
                )
            except (ValueError, OSError) as error:
                texts.append(f"{', '.join(names)} are not compared: {error}")
            else:
                scores = comparison_text.format_test(comparison)
                texts.append(f"```text\n{scores}\n```")
    return "\n\n".join(texts)


def _command() -> str:
    """Return the command that gives the same report."""
    options = [
        flag.serialize()
        for flag in map(flags.FLAGS.__getitem__, ("runs", *INPUTS))
        if not flag.using_default_value
    ]
    return shlex.join(["vaswani", "report", *options])


def _draw_model(model: model_figures.Model, output: pathlib.Path) -> None:
    """Draw figures 1 and 2."""
    for number, module in ((1, architecture), (2, attention_diagram)):
        figure = module.draw(
            module.read(model.settings, model.vocab_size), title=model.title
        )
        canvas.save(figure, output / f"figure{number}.png")


@dataclasses.dataclass(frozen=True)
class _HeadReading:
    """The run of figures 3 to 5, and its heads.

    Attributes:
        run: The run and its model; None if no run can show them.
        heads: Its heads.
        failures: Why better runs could not be read.
    """

    run: attention_figures.ShownRun | None
    heads: attention_figures.Heads | None
    failures: list[str]


def _read_heads(runs: list[scored_runs.ScoredRun]) -> _HeadReading:
    """Return the best run of which the heads can be read."""
    failures: list[str] = []
    for run in attention_figures.find_runs(runs):
        try:
            shown_run = attention_figures.ShownRun(run, api.load(run.workdir))
            heads = attention_figures.read_heads(shown_run)
        except (ValueError, OSError) as error:
            failures.append(f"{run.workdir}: {error}")
            logger.info(f"left out: {failures[-1]}")
        else:
            logger.info(f"the figures are of {run.workdir}")
            return _HeadReading(shown_run, heads, failures)
    return _HeadReading(None, None, failures)


def _draw_heads(heads: attention_figures.Heads, output: pathlib.Path) -> None:
    for number, layer in heads.layers.items():
        figure = attention_lines.draw_figure(
            number, layer, title=str(heads.run.workdir)
        )
        canvas.save(figure, output / f"figure{number}.png")


def _read_runs() -> list[scored_runs.ScoredRun]:
    """Read all of --runs; of its default, the directories that exist."""
    is_named = not flags.FLAGS["runs"].using_default_value
    if not RUNS.value:
        raise ValueError("--runs= must be a path on this machine")
    runs = []
    for value in RUNS.value:
        directory = program.local_path("runs", value)
        if not directory.is_dir():
            if is_named:
                raise ValueError(f"--runs={directory} is not a directory")
            continue
        records = scored_runs.read(directory)
        logger.info(f"{len(records.runs)} evaluations of workdirs in {directory}")
        for problem in records.unreadable:
            logger.info(f"left out: {problem}")
        runs += records.runs
    # `runs,runs/seeds` names the same directories twice.
    return list(
        {
            (run.workdir.resolve(), json.dumps(run.record, sort_keys=True)): run
            for run in runs
        }.values()
    )


def _lengths() -> list[int]:
    try:
        lengths = [int(n) for n in LENGTHS.value]
    except ValueError:
        lengths = []
    if len(lengths) < 2 or lengths != sorted(set(lengths)) or lengths[0] < 1:
        raise ValueError(
            f"--lengths={','.join(LENGTHS.value)} must be two or more rising numbers, "
            "from 1"
        )
    return lengths


PROGRAM = program.Program(
    main=main,
    syntax=Syntax(arguments=("runs",)),
)

if __name__ == "__main__":
    PROGRAM.run()
