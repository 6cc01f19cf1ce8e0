"""A measured figure stands once, in docs/results/NAME.json; pages repeat it exactly."""

import json
import pathlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from configs import multi30k_ende
from tests.docs import pages

ROOT = pathlib.Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"
PAGES = [
    path.stem
    for path in sorted(RESULTS.glob("*.json"))
    # docs/paper shows paper.json; tests/docs/test_paper.py compares it.
    if path.stem not in ("page", "paper")
]
# 40.25 and 0.07, but no part of a version such as 2.13.0.
FIGURE = re.compile(r"(?<![\d.])\d[\d,]*\.\d+(?!\.?\d)")
CODE = re.compile(r"```.*?```|`[^`]*`", re.DOTALL)
# What a figure may be repeated in: a row of a table, a point of a list, a paragraph.
ITEM = re.compile(r"\n(?=\||- |\n)")


def read_page(name: str) -> str:
    return (RESULTS / f"{name}.md").read_text(encoding="utf-8")


def read_text(name: str) -> str:
    return (RESULTS / f"{name}.json").read_text(encoding="utf-8")


def read_measurements(name: str) -> dict[str, dict[str, Any]]:
    """Return the measurements of a page, each decimal as it is written."""
    measurements = json.loads(read_text(name), parse_float=str)
    assert isinstance(measurements, dict)
    return measurements


def figures(text: str) -> set[str]:
    """Return the decimals of a text, without those of code."""
    return set(FIGURE.findall(CODE.sub("", text)))


def in_one_line(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


def format_cell(value: str | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else value


def format_table(measurement: Mapping[str, Any]) -> str:
    columns: Sequence[str] = measurement["columns"]
    rows = [columns, ["---"] * len(columns), *measurement["rows"]]
    return "\n".join(f"| {' | '.join(map(format_cell, row))} |" for row in rows)


def read_printed(name: str) -> dict[str, list[str]]:
    """Return the lines that each command of a page printed."""
    measurements = json.loads(read_text(name)).values()
    printed: dict[str, list[str]] = {}
    for measurement in measurements:
        printed |= measurement.get("printed", {})
    assert printed
    return printed


def read_demo() -> dict[str, list[str]]:
    """Return the lines that each command of the whole demo printed."""
    return read_printed("demo")


def test_results_have_pages_with_json():
    assert PAGES == [
        "accelerators",
        "demo",
        "multi30k",
        "multilingual",
        "parsing",
        "peers",
        "serving",
        "speed",
        "start",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_links_to_its_json(name):
    assert f"[{name}.json]({name}.json)" in read_page(name)


@pytest.mark.parametrize("name", PAGES)
def test_every_table_of_a_page_is_that_of_its_json(name):
    page = read_page(name)
    tables = [
        format_table(measurement)
        for measurement in read_measurements(name).values()
        if "columns" in measurement
    ]
    for table in tables:
        assert f"\n\n{table}\n" in page, f"docs/results/{name}.md lacks:\n{table}"
    assert page.count("\n| ---") == len(tables)


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_of_a_page_is_in_its_json(name):
    assert figures(read_page(name)) <= set(FIGURE.findall(read_text(name)))


@pytest.mark.parametrize("name", PAGES)
def test_a_page_names_command_hardware_and_date_of_every_measurement(name):
    page = in_one_line(read_page(name))
    for key, measurement in read_measurements(name).items():
        assert measurement["what"], key
        assert re.fullmatch(
            r"2\d{3}-\d\d-\d\d( to 2\d{3}-\d\d-\d\d)?", measurement["date"]
        )
        assert measurement["date"] in page, key
        assert measurement["hardware"] in page, key
        assert measurement.get("commit", "") in page, key
        # The first one stands for all.
        for command in measurement["commands"][:1]:
            assert command in page, key


def test_the_mean_of_the_seeds_counts_each_seed_once():
    rows = json.loads(read_text("multi30k"))["seeds"]["rows"]
    assert [row[0] for row in rows] == ["1", "1, again", "2", "3", "mean of the seeds"]
    for first, repeat, *other_seeds, mean in list(zip(*rows, strict=True))[1:4]:
        expected = ((first + repeat) / 2 + sum(other_seeds)) / (1 + len(other_seeds))
        assert mean == pytest.approx(expected, abs=0.005)


def test_the_table_of_the_demo_is_what_its_commands_printed():
    commands = ("runs/demo --samples=10", "runs/demo_fr --samples=10")
    for row, arguments in zip(
        read_measurements("demo")["scores"]["rows"], commands, strict=True
    ):
        lines = read_demo()[f"vaswani evaluate {arguments}"]
        printed = {
            name: figure for name, figure, *_ in map(str.split, filter(None, lines))
        }
        names = ("sacrebleu", "chrf", "paper_bleu", "test/perplexity")
        assert row[1:5] == [printed[name] for name in names]


def test_the_table_of_several_languages_is_what_its_command_printed():
    rows = read_measurements("multilingual")["scores"]["rows"]
    lines = read_printed("multilingual")["vaswani evaluate runs/multilingual"]
    printed = {line.split()[0]: line.split()[1:] for line in filter(None, lines)}
    assert [row[0] for row in rows] == ["de", "fr", "es", "ja"]
    for locale, bleu, chrf, tokenizer in rows:
        value, signature = printed[f"sacrebleu[{locale}]"]
        assert (bleu, chrf) == (value, printed[f"chrf[{locale}]"][0])
        assert f"|tok:{tokenizer}|" in signature
        assert float(bleu) >= 95


def test_the_tables_of_accelerators_are_what_check_printed():
    text = (RESULTS / "accelerators" / "verdicts.json").read_text(encoding="utf-8")
    printed = json.loads(text)
    measurements = read_measurements("accelerators")

    def update(verdict: dict[str, Any]) -> str:
        expected = verdict["steps"][0]["expected"]
        computing = 1e3 * expected["computing_seconds"]
        return (
            f"{computing:.1f} + {1e3 * expected['exposed_communication_seconds']:.1f}"
        )

    sizes = {
        verdict["hardware"]: [
            verdict["hardware"],
            f"{verdict['memory']['free_bytes'] / 1e9:.1f}",
            update(verdict),
            f"{100 * verdict['expected_mfu']:.1f} %",
        ]
        for command, verdicts in printed.items()
        for verdict in verdicts
        if "base_ende.py --hardware=" in command
    }
    rows = measurements["sizes"]["rows"]
    assert rows and rows == [sizes[row[0]] for row in rows]

    after = [row[2] for row in measurements["comparison"]["rows"]]
    expected = []
    for preset in ("base_ende", "big_enfr"):
        for batching in ("", "--config.data.batching=packed "):
            start = f"vaswani check configs/{preset}.py {batching}--hardware=v5e:2x4"
            [verdict] = next(v for c, v in printed.items() if c.startswith(start))
            expected.append(update(verdict))
    [search] = next(v for c, v in printed.items() if "source_tokens_per_batch" in c)
    position = search["search"]["loops"][0]["expected_seconds"]
    [gpu] = next(v for c, v in printed.items() if "h100" in c)
    expected += [
        f"{1e3 * position:.2f}",
        gpu["steps"][0]["kernels"],
        gpu["search"]["loops"][0]["kernels"],
    ]
    assert after == expected


@pytest.mark.parametrize(
    "command",
    [
        command
        for page in pages.PAGES
        for command in pages.read_commands(page)
        if command.measured and command.output
    ],
    ids=lambda command: f"{command.page.stem}: {command.text}",
)
def test_a_measured_output_is_that_of_the_whole_run(command):
    printed = read_demo() | read_printed("multilingual") | read_printed("serving")
    assert pages.matches(command.output, "\n".join(printed[command.text]))


@pytest.mark.parametrize("name", ["README.md", "docs/tutorials/demo.md"])
def test_a_sample_is_that_of_the_whole_demo(name):
    page = (ROOT / name).read_text(encoding="utf-8")
    printed = "\n".join(read_demo()["vaswani evaluate runs/demo --samples=10"])
    [sample] = re.findall(
        r"^```text\n(source .*?)^```$", page, re.DOTALL | re.MULTILINE
    )
    assert pages.matches(("...", *sample.splitlines(), "..."), printed)


def test_the_readme_translates_from_python_as_the_whole_demo():
    [translation] = read_demo()[
        "echo '3 hours ago' | vaswani translate runs/demo --quiet"
    ]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f'translator.translate(["3 hours ago"])  # ["{translation}"]' in readme


@pytest.mark.parametrize(
    "path",
    [
        ROOT / "README.md",
        *sorted(
            path
            for path in (ROOT / "docs").rglob("*.md")
            if not path.is_relative_to(RESULTS) and "_build" not in path.parts
        ),
    ],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_what_links_to_results_repeats_only_their_figures(path):
    for item in ITEM.split(path.read_text(encoding="utf-8")):
        names = re.findall(r"results/(\w+)\.md", item)
        page_figures = {figure for name in names for figure in figures(read_page(name))}
        assert not names or figures(item) <= page_figures, item


def test_the_head_of_a_preset_repeats_only_measured_figures():
    head = multi30k_ende.__doc__
    assert figures(head)
    assert figures(head) <= set(FIGURE.findall(read_text("multi30k")))
