"""A command line is parsed by the real parsers, or refused in one line."""

import json

import pytest

from tests import interpreter
from vaswani_jax.core import presets

DEMO = "--config=configs/demo.py"
# What is refused, and how the line begins.
REFUSED = {
    "": "--config is missing: name a preset (base_ende, ",
    "--config.model.num_layers=2": "--config is missing: name a preset (base_ende, ",
    "--workdir=new --init_from=RUNN@best": (
        "--init_from=RUNN@best: there is no directory RUNN; did you mean RUN?"
    ),
    "--workdir=new --init_from=configs": (
        "--init_from=configs: configs is no workdir of a run: it has no config.json"
    ),
    "--config=configs/demos.py": (
        "--config=configs/demos.py: there is no file configs/demos.py; did you mean "
        "demo?"
    ),
    "--config=configs": "--config=configs: configs holds no run: it has no config.json",
    "demp": "--config=demp: demp is no preset, FILE.py or workdir; did you mean demo?",
    f"{DEMO}:big": f"{DEMO}:big: demo.py has no variants: leave out :big",
    "own_text:huge": (
        "--config=own_text:huge: unknown variant 'huge' of own_text.py: choose base, "
        "big or small"
    ),
    "--init_from=typo.safetensors --workdir=new": (
        "--init_from=typo.safetensors: there is no file typo.safetensors"
    ),
    "--workdir=file://HOME/none": "--workdir=file://HOME/none: HOME/",
    "copy_task:text": (
        "--config=copy_task:text: unknown variant 'text' of copy_task.py: choose one "
        "of copy, reverse"
    ),
    "--workdir=RUN@best --checkpoint=newest": (
        "--workdir=RUN@best names a checkpoint, and so does --checkpoint=newest"
    ),
    "demo more": "unexpected argument more; usage: program CONFIG [--FLAG=VALUE ...]",
    f"{DEMO} demo": "unexpected argument demo: --config is given, too",
    "demo --count=two": "--count must be a whole number, got 'two'",
    "demo --share=much": "--share must be a number in the range [0.0, 1.0], got 'much'",
    "demo --share=2": "--share must be a number in the range [0.0, 1.0], got '2'",
    "demo --kind=c": "--kind must be one of a, b, got 'c'",
    "demo --fast=perhaps": "--fast must be true or false, got 'perhaps'",
    "demo --config.model.num_heads=four": (
        "--config.model.num_heads must be a whole number, got 'four'"
    ),
    # Before the configuration, too.
    f"--config.training.num_steps=1e5 {DEMO}": (
        "--config.training.num_steps must be a whole number, got '1e5'"
    ),
    "demo --config.model.dropout_rate=x": (
        "--config.model.dropout_rate must be a number, got 'x'"
    ),
    "demo --config.data.lowercase_scores=maybe": (
        "--config.data.lowercase_scores must be true or false, got 'maybe'"
    ),
    "demo --config.model.num_head=4": (
        "--config.model.num_head=4: unknown key config.model.num_head; did you mean "
        "config.model.num_heads?"
    ),
    "demo --noconfig.model.attention_bia": (
        "--noconfig.model.attention_bia: unknown key config.model.attention_bia; did "
        "you mean config.model.attention_bias?"
    ),
    "demo --config.beam_size=3": (
        "--config.beam_size=3: unknown key config.beam_size; did you mean "
        "config.search.beam_size?"
    ),
    "demo --config.beam_size 3": "--config.beam_size=3: unknown key config.beam_size;",
    "demo --config.model=2": (
        "--config.model=2: config.model is a section; change one of its keys by "
        "--config.model.KEY=VALUE"
    ),
    "demo --flagfile=/nowhere": "--flagfile cannot be read: [Errno 2] No such file",
    "demo --version": "unknown flag --version: `vaswani --version` prints the version",
    "--workdir=HOME/seeds": "--workdir=HOME/seeds holds a run for each seed, but one",
    "--workdir=HOME/seeds --seeds=2": (
        "--config is missing: name a run's directory, such as HOME/seeds/seed-1\n"
    ),
    "demo --cuont=2": "unknown flag --cuont; did you mean --count?",
    "demo --cuont 2": "unknown flag --cuont; did you mean --count?",
    "--cuont 2 demo": "unknown flag --cuont; did you mean --count?",
    "demo --dropout_rate=0.2": (
        "unknown flag --dropout_rate; did you mean --config.model.dropout_rate?"
    ),
    "--confg=demo": "unknown flag --confg; did you mean --config?",
    "--workdir=new --init_from=HOME/foreign": (
        "--init_from=HOME/foreign: section config.data is missing: name the "
        "configuration of a run"
    ),
    "--workdir=~nobody_here/a": (
        "~nobody_here/a: ~nobody_here is the home directory of no user here; write "
        "./~nobody_here/a for a file of this name"
    ),
    "--config=configs/of_run.py:/nowhere/a.py": (
        "--config=configs/of_run.py:/nowhere/a.py: /nowhere/a.py holds no run: it has "
        "no config.json"
    ),
}
# What is understood, and the settings and flags that it gives.
UNDERSTOOD = {
    "demo": [3, 1, "runs/demo"],
    f"{DEMO} --count=2 --config.model.num_layers=4": [4, 2, "runs/demo"],
    "--config.model.num_layers=4 --count 2 --config demo": [4, 2, "runs/demo"],
    "table3:C1 --workdir=here": [2, 1, "here"],
    "RUN": [1, 1, "RUN"],
    "--workdir=RUN --config.model.num_layers=2": [2, 1, "RUN"],
    "--workdir=RUN --config=demo": [3, 1, "RUN"],
    "--workdir=new --init_from=RUN@best": [1, 1, "new"],
    "--workdir=~/new --init_from=~/run@best": [1, 1, "HOME/new"],
    "--workdir=file://HOME/new --init_from=RUN": [1, 1, "file://HOME/new"],
    "--workdir=file://RUN --init_from=typo": [1, 1, "file://RUN"],
    "~/run": [1, 1, "RUN"],
    "--workdir=~/run": [1, 1, "RUN"],
    "--workdir=new --init_from=RUN/checkpoints/5": [1, 1, "new"],
    "--help": [0, ""],
    "-h demo": [0, ""],
    "--helpfull": [0, ""],
    "--helpshort": [0, ""],
    "-?": [0, ""],
    "--workdir=RUN@best": [1, 1, "RUN at best"],
    "--workdir=RUN/checkpoints/800": [1, 1, "RUN at 800"],
    "--workdir=HOME/file@run": [1, 1, "HOME/file@run"],
    "demo --workdir=RUN@best --workdir=RUN@newest": [3, 1, "RUN@newest"],
    "demo -- --count=2 --config.model.num_layers=4": [4, 2, "runs/demo"],
    "-- RUN": [1, 1, "RUN"],
    "demo --undefok=cuont --cuont=2": [3, 1, "runs/demo"],
    "demo --flagfile=FILE": [5, 1, "runs/demo"],
    "demo --flagfile=FILE --config.model.num_layers=7": [7, 1, "runs/demo"],
}
PROGRAM = """
import contextlib, io, json, sys
from absl import flags
from vaswani_jax.cli import command_line, path_flags, syntax

outcomes = {}
for line in json.loads(sys.argv[1]):
    values = flags.FLAGS = flags.FlagValues()
    flags.DEFINE_integer("count", 1, "", flag_values=values)
    flags.DEFINE_integer("seeds", None, "", flag_values=values)
    flags.DEFINE_float("share", 0, "", 0.0, 1.0, flag_values=values)
    flags.DEFINE_enum("kind", "a", ["a", "b"], "", flag_values=values)
    flags.DEFINE_bool("fast", False, "", flag_values=values)
    flags.DEFINE(path_flags.PathParser(), "init_from", "", "", values)
    flags.DEFINE(path_flags.PathParser(), "workdir", "", "", values)
    flags.DEFINE_string("checkpoint", "", "", flag_values=values)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as lines,
    ):
        try:
            command_line.parse(
                ["program", *line.split()],
                syntax.Syntax(
                    arguments=("config",), takes_config=True, default_workdir=True
                ),
                description="",
            )
            num_layers = values["config"].value.model.num_layers
            model = " at ".join(filter(None, [values.workdir, values.checkpoint]))
            outcomes[line] = [num_layers, values.count, model]
        except SystemExit as end:
            outcomes[line] = [end.code, lines.getvalue()]
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """Return what each command line leads to, all in one process."""
    home = tmp_path_factory.mktemp("home")
    run = home / "run"
    run.mkdir()
    (home / "file@run").symlink_to(run)
    config = presets.load(*presets.find("demo"))
    config.model.num_layers = 1
    (run / "config.json").write_text(config.to_json())
    (home / "foreign").mkdir()
    (home / "foreign/config.json").write_text('{"add_source_eos": true}')
    (home / "seeds/seed-1").mkdir(parents=True)
    (home / "seeds/seed-1/config.json").write_text(config.to_json())
    (run / "flags").write_text("--config.model.num_layers=5\n# A comment.\n")

    def in_place(text: str) -> str:
        text = text.replace("RUN", str(run)).replace("FILE", str(run / "flags"))
        return text.replace("HOME", str(home))

    def in_short(text: str) -> str:
        return text.replace(str(run), "RUN").replace(str(home), "HOME")

    lines = {in_place(line): line for line in (*REFUSED, *UNDERSTOOD)}
    printed = interpreter.output_of(PROGRAM, json.dumps(list(lines)), HOME=str(home))
    return {
        lines[line]: [
            in_short(part) if isinstance(part, str) else part for part in outcome
        ]
        for line, outcome in json.loads(printed).items()
    }


@pytest.mark.parametrize("line", REFUSED)
def test_a_mistake_is_refused_in_one_line(
    line: str, outcomes: dict[str, list[object]]
) -> None:
    status, text = outcomes[line]
    assert str(text).startswith(f"error: {REFUSED[line]}")
    assert str(text).count("\n") == 1
    assert status == 1


@pytest.mark.parametrize("line", UNDERSTOOD)
def test_a_command_line_is_understood(
    line: str, outcomes: dict[str, list[object]]
) -> None:
    assert outcomes[line] == UNDERSTOOD[line]


def test_the_configuration_is_told_as_the_command_line_gives_it() -> None:
    program = (
        "from absl import flags; from vaswani_jax.cli import command_line, syntax; "
        "command_line.parse(['program', 'demo', '--config.model.num_layers=2', "
        "'--noconfig.model.attention_bias'], syntax.Syntax(arguments=('config',), "
        "takes_config=True), description=''); "
        "print(command_line.list_config_flags())"
    )
    assert interpreter.output_of(program) == str(
        [
            "--config=demo",
            "--config.model.attention_bias=False",
            "--config.model.num_layers=2",
        ]
    )


def test_the_last_argument_of_some_programs_takes_all_words() -> None:
    program = (
        "from absl import flags; from vaswani_jax.cli import command_line, syntax; "
        "flags.DEFINE_multi_string('run', [], 'A run'); "
        "command_line.parse(['program', 'a', '--run=b', 'c,d'], "
        "syntax.Syntax(arguments=('run',), repeats=True), description=''); "
        "print(flags.FLAGS.run)"
    )
    assert interpreter.output_of(program) == "['b', 'a', 'c,d']"
