"""The paper's tables and figures, from the code and from what has been run.

python -m vaswani_jax.report --runs=runs --output=runs/report
"""

import pathlib

from absl import flags

from configs import base_ende, base_enfr, big_ende, big_enfr, table3, table3_small
from vaswani_jax.analysis import figures, layers, report, results
from vaswani_jax.core import parsing, program

RUNS = flags.DEFINE_string("runs", "runs", "Where workdirs lie that were trained.")
OUTPUT = flags.DEFINE_string("output", "runs/report", "Where the report goes.")
LENGTHS = flags.DEFINE_list(
    "lengths",
    ["64", "128", "256", "512", "1024", "2048", "4096"],
    "Lengths n of table 1.",
)
KERNEL = flags.DEFINE_integer("kernel", 3, "k of table 1.", lower_bound=2)
WINDOW = flags.DEFINE_integer("window", 64, "r of table 1.", lower_bound=2)
PRESETS = {
    ("base", "de"): base_ende,
    ("big", "de"): big_ende,
    ("base", "fr"): base_enfr,
    ("big", "fr"): big_enfr,
}


def main() -> None:
    """Print report.md, and write it with its figures."""
    lengths = _lengths()
    output = pathlib.Path(OUTPUT.value)
    output.mkdir(parents=True, exist_ok=True)
    runs, unreadable = results.read(pathlib.Path(RUNS.value))
    program.say(f"{len(runs)} evaluations of workdirs in {RUNS.value}")
    for problem in unreadable:
        program.say(f"left out: {problem}")
    rows = {row: parsing.parse(table3.get_config(row)) for row in table3.ROWS}
    small = {row: parsing.parse(table3_small.get_config(row)) for row in table3.ROWS}
    presets = {
        name: parsing.parse(module.get_config()) for name, module in PRESETS.items()
    }
    model = rows["base"].model
    seconds, operations, steps = {}, {}, {}
    for kind in layers.TABLE1:
        program.say(f"timing {kind.name}")
        run = layers.layer(
            kind.name, model=model, kernel=KERNEL.value, window=WINDOW.value
        )
        seconds[kind.name] = [
            layers.seconds(run, rows=1, n=n, d_model=model.d_model, repeats=5)
            for n in lengths
        ]
        steps[kind.name] = [
            layers.sequential_steps(run, n=n, d_model=model.d_model) for n in lengths
        ]
        operations[kind.name] = [
            float(kind.operations(n=n, d=model.d_model, k=KERNEL.value, r=WINDOW.value))
            for n in lengths
        ]
    figures.layers(
        output / "table1.png", lengths, operations, seconds, d_model=model.d_model
    )
    figures.learning_rates(output / "learning_rate.png")
    figures.positions(output / "positions.png")
    sections = {
        "Table 1: what layers cost": report.table1(
            lengths,
            seconds,
            steps,
            d=model.d_model,
            kernel=KERNEL.value,
            window=WINDOW.value,
        )
        + "\n\n![operations and seconds](table1.png)",
        "Table 2: translation": report.table2(presets, runs),
        "Table 3: variations of the base model": report.table3(rows, runs),
        "Table 3: parameters by matrix, in millions": report.matrices(rows),
        "Table 3 at the scale of two cores": report.table3_small(small, runs),
        "Section 5.3: the learning rate": "![learning rate](learning_rate.png)",
        "Section 3.5: positional encoding": "![sinusoids](positions.png)",
    }
    text = "\n\n".join(f"## {title}\n\n{body}" for title, body in sections.items())
    text = f"# The paper, from this code\n\n{text}\n"
    (output / "report.md").write_text(text)
    print(text)
    program.say(f"written: {output}/report.md and its figures")


def _lengths() -> list[int]:
    try:
        lengths = [int(n) for n in LENGTHS.value]
    except ValueError:
        lengths = []
    if len(lengths) < 2 or lengths != sorted(set(lengths)) or lengths[0] < 1:
        raise ValueError(
            f"--lengths={','.join(LENGTHS.value)} must be two or more rising numbers"
        )
    return lengths


if __name__ == "__main__":
    program.run(main, expected=(ValueError, OSError, ImportError))
