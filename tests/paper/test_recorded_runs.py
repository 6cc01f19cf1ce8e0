"""The README's small table 3 is what the report makes of the runs in results/."""

import pathlib

from configs import table3, table3_small
from vaswani_jax.core import parsing
from vaswani_jax.paper import ablations
from vaswani_jax.paper import runs as runs_

ROOT = pathlib.Path(__file__).parents[2]


def test_the_readme_shows_what_was_recorded(monkeypatch):
    monkeypatch.chdir(ROOT)
    runs, unreadable = runs_.read(pathlib.Path("results"))
    assert runs and not unreadable
    assert not [run.where for run in runs if run.flaw]
    rows = {row: parsing.parse(table3_small.get_config(row)) for row in table3.ROWS}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = ablations.table(rows, runs)
    for line in table.splitlines():
        if line.startswith("|"):
            assert line in readme.splitlines()
    seeds = table.split("\n")[0]
    assert seeds in " ".join(readme.split())


def test_no_record_names_a_place_of_the_machine_it_was_made_on():
    for path in (ROOT / "results").rglob("*.json*"):
        assert '"/' not in path.read_text(encoding="utf-8"), path
