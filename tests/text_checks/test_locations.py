"""Findings in a text of several files name the file and its line."""

import pathlib

import vaswani_jax
from tests.text_checks import texts
from vaswani_jax.data.sources import Location
from vaswani_jax.text_checks import locations
from vaswani_jax.text_checks.findings import Finding, Severity
from vaswani_jax.text_checks.reading import Text

FILE = pathlib.Path("s2.en")


def test_findings_in_shards_name_file_and_line(tmp_path: pathlib.Path) -> None:
    splits = texts.splits()
    texts.shuffle_targets(splits)  # Lines 201 to 400.
    train = splits.pop("train")
    train[350:400] = [(source, f"\x07{target}") for source, target in train[350:400]]
    splits["test"][:20] = train[310:330]
    shards = {f"s{n}": train[n * 300 : n * 300 + 300] for n in range(3)}
    texts.write(tmp_path, splits | shards)
    values = {
        "data.text_directory": str(tmp_path),
        "data.source_locale": "en",
        "data.target_locale": "de",
        "data.train_source": "s*.source",
        "data.train_target": "s*.target",
    }
    report = vaswani_jax.check_data(vaswani_jax.load_config("own_text", values))
    by_kind = {finding.kind: finding for finding in report.findings}
    assert by_kind["misaligned"].lines == [(201, 400)]
    assert by_kind["misaligned"].locations == [
        f"lines 201 to 400 are {tmp_path}/s0.source, line 201 to "
        f"{tmp_path}/s1.source, line 100"
    ]
    [example, *_] = by_kind["control_characters"].examples
    assert str(example) == f"{tmp_path}/s1.target, line 51: \\u0007{train[350][1][1:]}"
    [example, *_] = by_kind["overlap"].examples
    assert str(example).startswith(f"training {tmp_path}/s1.source, line 11: ")


def test_a_part_within_one_file_names_it_once() -> None:
    finding = Finding(
        kind="misaligned",
        severity=Severity.SERIOUS,
        split="train",
        message="",
        share=1.0,
        remedies=[],
        lines=[(6, 1008), (6, 2000)],
    )
    spots = {number: Location(FILE, FILE, number - 5) for number in (6, 1008)}
    text = Text("train", "", "", lambda: iter(()), "en", "de", locate=lambda _: spots)
    [located] = locations.add_locations([finding], [text])
    assert located.locations == ["lines 6 to 1,008 are s2.en, lines 1 to 1,003"]
