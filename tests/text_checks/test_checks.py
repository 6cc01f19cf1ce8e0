"""Faults that are planted in clean text are found, and nothing in clean text."""

import dataclasses
import pathlib
import random
import re
from collections.abc import Callable

import pytest

import vaswani_jax
from tests import settings
from tests.text_checks import texts
from tests.text_checks.texts import Splits
from vaswani_jax.core import config
from vaswani_jax.text_checks import checks
from vaswani_jax.text_checks.report import DataReport
from vaswani_jax.text_checks.sample import Pair

NO_HELD_OUT = dict.fromkeys(
    ("valid_source", "valid_target", "test_source", "test_target"), ""
)


def of_files(directory: pathlib.Path, **changes: object) -> config.Config:
    return vaswani_jax.load_config(
        "own_text",
        {
            "data.text_directory": str(directory),
            "data.source_locale": "en",
            "data.target_locale": "de",
            **{f"data.{key}": value for key, value in changes.items()},
        },
    )


def check(directory: pathlib.Path, splits: Splits, **changes: object) -> DataReport:
    texts.write(directory, splits)
    return vaswani_jax.check_data(of_files(directory, **changes), workdir=directory)


def swap(pairs: list[Pair]) -> list[Pair]:
    return [(target, source) for source, target in pairs]


def test_clean_text_has_no_finding(tmp_path: pathlib.Path) -> None:
    report = check(tmp_path, texts.splits())
    assert report.findings == [] and not report.is_serious
    assert report.texts["train"]["pairs"] == 900
    assert report.texts["valid"]["same_pair"] == 0
    assert any("no vocabulary yet" in note for note in report.notes)
    # Nothing was written.
    names = {f"{s}.{side}" for s in texts.splits() for side in ("source", "target")}
    assert {path.name for path in tmp_path.iterdir()} == names


def swap_some(splits: Splits) -> None:
    splits["train"][400:500] = swap(splits["train"][400:500])


def swap_valid(splits: Splits) -> None:
    splits["valid"] = swap(splits["valid"])


def copy_into_test(splits: Splits) -> None:
    splits["test"][:30] = splits["train"][:30]


def repeat_pairs(splits: Splits) -> None:
    splits["train"] += splits["train"][:300]


def copy_sources(splits: Splits) -> None:
    long = [source for source, _ in texts.sentences(90)]
    splits["train"][100:190] = [(line, line) for line in long]


def empty_sides(splits: Splits) -> None:
    splits["train"][10:20] = [(source, "") for source, _ in splits["train"][10:20]]


def break_encoding(splits: Splits) -> None:
    splits["train"] = [
        (source, target.encode().decode("cp1252", "replace"))
        for source, target in splits["train"]
    ]


def cyrillic_targets(splits: Splits) -> None:
    for number in range(0, 900, 20):
        source, _ = splits["train"][number]
        splits["train"][number] = (source, "Анна видит большую собаку")


def lowercase_test(splits: Splits) -> None:
    splits["test"] = [(s.lower(), t.lower()) for s, t in splits["test"]]


def one_target(splits: Splits) -> None:
    splits["train"][:300] = [
        (source, "Bitte warten") for source, _ in texts.splits()["train"][:300]
    ]


def copy_nearly_into_test(splits: Splits) -> None:
    splits["test"][:30] = [
        (f"{source.upper()} today!", target.upper())
        for source, target in splits["train"][:30]
    ]


def cut_targets(splits: Splits) -> None:
    splits["train"][:90] = [
        (source, target[:2]) for source, target in splits["train"][:90]
    ]


def join_lines(splits: Splits) -> None:
    sources, targets = zip(*splits["train"], strict=True)
    for start in range(0, 300, 10):
        lines = slice(start, start + 90)
        splits["train"][start] = (" ".join(sources[lines]), " ".join(targets[lines]))


def leave_untranslated(splits: Splits) -> None:
    sources = [source for source, _ in texts.sentences(90)]
    splits["train"][100:190] = list(zip(sources, sources[::-1], strict=True))


def split_off_marks(splits: Splits) -> None:
    for name, pairs in splits.items():
        splits[name] = [
            (
                re.sub(r"([.,!?])", r" \1", source),
                re.sub(r"([.,!?])", r" \1", target),
            )
            for source, target in pairs
        ]


@pytest.mark.parametrize(
    ("plant", "found"),
    [
        (texts.shuffle_targets, {"serious train misaligned"}),
        (swap_some, {"serious train swapped_lines"}),
        (swap_valid, {"serious valid swapped"}),
        (copy_into_test, {"serious test overlap"}),
        (repeat_pairs, {"minor train duplicates"}),
        (copy_sources, {"minor train equal_sides"}),
        (empty_sides, {"minor train empty"}),
        (break_encoding, {"serious train broken_encoding"}),
        (cyrillic_targets, {"minor train other_script"}),
        (lowercase_test, {"serious test unlike_forms"}),
        (one_target, {"serious train one_line"}),
        (copy_nearly_into_test, {"minor test overlap"}),
        (cut_targets, {"minor train length_ratio"}),
        (join_lines, {"minor train too_long"}),
        (leave_untranslated, {"minor train language"}),
        (split_off_marks, {"minor train text_form"}),
    ],
)
def test_each_planted_fault_is_found(
    plant: Callable[[Splits], None], found: set[str], tmp_path: pathlib.Path
) -> None:
    splits = texts.splits()
    plant(splits)
    report = check(tmp_path, splits)
    kinds = {f"{f.severity} {f.split} {f.kind}" for f in report.findings}
    assert found <= kinds, report.describe()
    assert report.is_serious == any(kind.startswith("serious") for kind in kinds)
    assert all(finding.remedies for finding in report.findings)


def test_swapped_sides_and_wrong_codes_are_found(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("py3langid")
    splits = {split: swap(pairs) for split, pairs in texts.splits().items()}
    kinds = {(f.split, f.kind) for f in check(tmp_path, splits).findings}
    assert kinds == {(split, "swapped") for split in splits}
    report = check(tmp_path, texts.splits(), target_locale="fr")
    assert {(f.split, f.kind) for f in report.findings} == {
        (split, "language") for split in splits
    }
    assert "--config.data.target_locale=de" in report.findings[0].remedies[0]


def test_a_setting_of_cleaning_turns_a_finding_into_a_note(
    tmp_path: pathlib.Path,
) -> None:
    splits = texts.splits()
    empty_sides(splits)
    [finding] = check(tmp_path, splits).findings
    assert finding.remedies[0] == "--config.data.clean_empty=True"
    report = check(tmp_path, splits, clean_empty=True)
    assert report.findings == []
    assert any("data.clean_empty=True is on" in note for note in report.notes)


def test_corpora_are_checked_one_by_one_and_held_out_text_against_all(
    tmp_path: pathlib.Path,
) -> None:
    splits = texts.splits()
    train = splits.pop("train")
    texts.write(tmp_path, splits | {"news": train[:450], "crawl": swap(train[450:])})
    texts.write(tmp_path, {"test": [*splits["test"][:50], *train[:50]]})
    corpora = [
        {"name": n, "source": f"{n}.source", "target": f"{n}.target", "weight": 1}
        for n in ("news", "crawl")
    ]
    report = vaswani_jax.check_data(
        of_files(tmp_path, corpora=corpora, train_source="", train_target="")
    )
    assert list(report.texts) == ["train news", "train crawl", "valid", "test"]
    assert report.texts["train crawl"]["pairs"] == 450
    [overlap] = [f for f in report.findings if f.kind == "overlap"]
    assert str(overlap.examples[0]).startswith("training news line 1:")
    pytest.importorskip("py3langid")
    [swapped] = [f for f in report.findings if f.kind == "swapped"]
    assert (swapped.split, swapped.corpus) == ("train", "crawl")
    assert "of the corpus 'crawl'" in swapped.remedies[0]


def test_held_out_lines_are_found_behind_the_tag_of_a_corpus(
    tmp_path: pathlib.Path,
) -> None:
    splits = texts.splits()
    train = splits.pop("train")
    splits["test"] = [(f"<n> {source}", target) for source, target in train[:100]]
    texts.write(tmp_path, splits | {"news": train})
    files = {"source": "news.source", "target": "news.target"}
    report = vaswani_jax.check_data(
        of_files(
            tmp_path,
            corpora=[{"name": "news", "tag": "<n>", **files}],
            user_symbols="<n>",
            train_source="",
            train_target="",
        )
    )
    assert report.texts["test"]["same_pair"] == 1
    [overlap] = [f for f in report.findings if f.kind == "overlap"]
    assert (overlap.split, str(overlap.severity)) == ("test", "serious")


def check_corpora(
    directory: pathlib.Path, splits: Splits, corpora: Splits
) -> DataReport:
    texts.write(directory, splits | corpora)
    named = [
        {"name": n, "source": f"{n}.source", "target": f"{n}.target", "weight": 1}
        for n in corpora
    ]
    changes = {"corpora": named, "train_source": "", "train_target": ""}
    return vaswani_jax.check_data(of_files(directory, **changes))


def test_faults_between_texts_are_found(tmp_path: pathlib.Path) -> None:
    splits = texts.splits()
    train = splits.pop("train")
    splits["valid"] = [(s.lower(), t.lower()) for s, t in splits["valid"]]
    splits["test"][:30] = splits["valid"][:30]
    report = check_corpora(
        tmp_path, splits, {"news": train[:500], "crawl": train[400:], "web": []}
    )
    found = {(str(f.severity), f.split, f.corpus, f.kind) for f in report.findings}
    # 100 of the 1,000 pairs of all corpora are there twice.
    assert found == {
        ("minor", "train", "", "duplicates"),
        ("serious", "train", "web", "no_pairs"),
        ("serious", "valid", "", "unlike_forms"),
        ("serious", "test", "", "overlap"),
    }, report.describe()
    by_kind = {f.kind: f for f in report.findings}
    assert by_kind["duplicates"].message == (
        "10.0% of the pairs are in an earlier corpus, too (repetitions in a corpus "
        "aside)"
    )
    assert "30.0% of the test pairs are also validation pairs" in (
        by_kind["overlap"].message
    )
    assert str(by_kind["overlap"].examples[0]).startswith("validation line 1: ")
    assert "in training" in report.describe()


def test_files_that_are_paired_by_order_alone_are_found(tmp_path: pathlib.Path) -> None:
    splits = texts.splits()
    parts = {f"s{n}": splits["train"][n * 300 : n * 300 + 300] for n in range(3)}
    texts.write(tmp_path, parts)
    (tmp_path / "s1.target").rename(tmp_path / "s11.target")
    names = {"train_source": "s*.source", "train_target": "s*.target"}
    report = check(tmp_path, splits, **names)
    found = {(f.split, f.kind) for f in report.findings}
    assert found >= {("train", "unlike_shards"), ("train", "misaligned")}


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_a_text_without_pairs_is_a_serious_finding(
    split: str, tmp_path: pathlib.Path
) -> None:
    report = check(tmp_path, texts.splits() | {split: []})
    [finding] = report.findings
    assert (finding.kind, finding.split) == ("no_pairs", split) and report.is_serious


def test_blocks_of_many_corpora_share_one_budget(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = texts.splits()
    train = splits.pop("train")
    corpora = {f"part{n}": train[n * 300 : n * 300 + 300] for n in range(3)}
    corpora["part1"][200:] = swap(corpora["part1"][200:])
    learned: list[Pair] = []
    learn = checks.sides.Profile.learn
    monkeypatch.setattr(
        checks.sides.Profile,
        "learn",
        lambda pairs: learned.extend(pairs) or learn(pairs),
    )
    monkeypatch.setattr(checks, "MAX_BLOCKS", 9)
    report = check_corpora(tmp_path, splits, corpora)
    # Three blocks of 50 pairs of each corpus.
    assert len(learned) == 450
    [finding] = [f for f in report.findings if f.kind == "swapped_lines"]
    assert finding.corpus == "part1"


def test_sources_without_languages_say_what_does_not_apply(
    tmp_path: pathlib.Path,
) -> None:
    copied = vaswani_jax.check_data(settings.small_settings())
    assert copied.findings == []
    assert any("is no language" in note for note in copied.notes)
    trees = ["(S (NP (DT the) (NN dog)) (VP (VBZ runs)))", "(S (VP (VB go)))"]
    (tmp_path / "trees").write_text("\n".join(trees))
    values = settings.TREEBANK | {"data.text_directory": str(tmp_path)}
    parsed = vaswani_jax.check_data(settings.small_settings(**values))
    assert parsed.findings == []
    assert parsed.texts["train"]["words"]["source"]["maximum"] == 3
    assert any(note.startswith("trees:") for note in parsed.notes)


def test_several_target_languages_are_judged_apart(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("py3langid")
    german, japanese = (texts.clean(name)["train"] for name in ("de", "ja"))
    pairs = [
        *((f"<2de> {source}", target) for source, target in german[:300]),
        *((f"<2ja> {source}", target) for source, target in japanese[:300]),
    ]
    random.Random(0).shuffle(pairs)
    tags = {"target_locale": "de,ja", "user_symbols": "<2de>,<2ja>"}
    assert check(tmp_path, {"train": pairs}, **NO_HELD_OUT, **tags).findings == []
    tags["target_locale"], tags["user_symbols"] = "ja,de", "<2ja>,<2de>"
    wrong = [(s.replace("<2de>", "<2ja>"), t) for s, t in pairs]
    report = check(tmp_path, {"train": wrong}, **NO_HELD_OUT, **tags)
    assert {f.kind for f in report.findings} <= {"other_script", "language"}
    assert report.findings


def test_a_language_of_short_lines_is_not_odd_beside_another(
    tmp_path: pathlib.Path,
) -> None:
    pairs = texts.sentences(200)
    shorter = [(f"<2fr> {s}", t[: len(s) // 4]) for s, t in pairs[:80]]
    text = [*((f"<2de> {s}", t) for s, t in pairs[80:]), *shorter]
    tags = {"target_locale": "de,fr", "user_symbols": "<2de>,<2fr>"}
    report = check(tmp_path, {"train": text}, **NO_HELD_OUT, **tags)
    assert "length_ratio" not in {finding.kind for finding in report.findings}


@pytest.mark.parametrize("tag", ["<2de> ", ">>de<< "])
def test_neither_tag_nor_code_hides_untranslated_pairs(
    tmp_path: pathlib.Path, tag: str
) -> None:
    pairs = texts.sentences(200)
    pairs[:20] = [(source, source) for source, _ in pairs[:20]]
    text = [(tag + source, target) for source, target in pairs]
    tags = {"target_locale": "de,fr", "user_symbols": "<2de>,<2fr>"}
    report = check(
        tmp_path,
        {"train": text},
        **NO_HELD_OUT,
        **(tags if tag.startswith("<2") else {}),
    )
    assert report.texts["train"]["equal_sides"] == 0.1


def test_a_ratio_limit_is_no_remedy_for_a_language_of_short_lines(
    tmp_path: pathlib.Path,
) -> None:
    pairs = texts.sentences(200)
    for target_length in (1, 2):
        text = [(s, t[: len(t) // target_length]) for s, t in pairs]
        text[:20] = [(source, target * 12) for source, target in text[:20]]
        report = check(tmp_path, {"train": text}, **NO_HELD_OUT)
        [finding] = [f for f in report.findings if f.kind == "length_ratio"]
        names_limit = any("clean_max_ratio" in r for r in finding.remedies)
        assert names_limit == (target_length == 1)


def test_text_that_is_gone_is_read_from_the_prepared_data(
    tmp_path: pathlib.Path,
) -> None:
    from vaswani_jax.data import prepared

    text, workdir = tmp_path / "text", tmp_path / "run"
    text.mkdir()
    texts.write(text, texts.splits())
    run = of_files(text, vocab_size=400)
    prepared.open_or_prepare(run, workdir / "data", rebuild=False)
    before = vaswani_jax.check_data(run, workdir=workdir)
    assert before.findings == []
    assert before.texts["train"]["tokens"]["source"]["per_word"] > 1
    for path in text.iterdir():
        path.unlink()
    after = vaswani_jax.check_data(run, workdir=workdir)
    assert after.findings == []
    assert sum("prepared data is checked instead" in note for note in after.notes) == 3
    for split in ("train", "valid", "test"):
        assert after.texts[split]["characters"] == before.texts[split]["characters"]
    texts.write(text, texts.splits() | {"valid": texts.splits()["test"]})
    found = vaswani_jax.check_data(run, workdir=workdir).findings
    assert {f.kind for f in found} == {"prepared", "overlap"}
    with pytest.raises(FileNotFoundError):
        vaswani_jax.check_data(
            dataclasses.replace(
                run, data=dataclasses.replace(run.data, train_source="x")
            ),
        )


def test_of_prepared_data_only_the_first_copy_is_checked(
    tmp_path: pathlib.Path,
) -> None:
    from vaswani_jax.data import prepared

    text, workdir = tmp_path / "text", tmp_path / "run"
    text.mkdir()
    splits = texts.splits()
    train = splits.pop("train")
    texts.write(text, splits | {"news": train[:400], "crawl": train[400:]})
    files = {
        n: {f: f"{n}.{f}" for f in ("source", "target")} for n in ("news", "crawl")
    }
    corpora = [
        {"name": "news", "tag": "<n>", **files["news"]},
        {"name": "crawl", "noise_upper": 0.01, "noise_copies": 3, **files["crawl"]},
    ]
    run = of_files(text, vocab_size=400, user_symbols="<n>", corpora=corpora)
    prepared.open_or_prepare(run, workdir / "data", rebuild=False)
    before = vaswani_jax.check_data(run, workdir=workdir)
    for name in ("news", "crawl"):
        (text / f"{name}.source").unlink()
    after = vaswani_jax.check_data(run, workdir=workdir)
    assert after.findings == before.findings == []
    [note] = [note for note in after.notes if "checked instead" in note]
    assert "its first copy" in note and "correct the source of the corpus" in note
    assert after.texts.keys() == before.texts.keys()
    assert after.texts["train news"]["words"] == before.texts["train news"]["words"]
    # With other settings, copies cannot be told apart.
    report = vaswani_jax.check_data(
        dataclasses.replace(run, data=dataclasses.replace(run.data, max_length=99)),
        workdir=workdir,
    )
    assert report.texts["train"]["pairs"] == 400 + 3 * 500
    assert {f.kind for f in report.findings} == {"prepared"}
    assert any("may have several copies" in note for note in report.notes)


def test_a_workdir_may_begin_at_home_but_not_at_a_url(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from vaswani_jax.data import prepared

    monkeypatch.setenv("HOME", str(tmp_path))
    texts.write(tmp_path, texts.splits())
    run = of_files(tmp_path, vocab_size=400)
    prepared.open_or_prepare(run, tmp_path / "run/data", rebuild=False)
    report = vaswani_jax.check_data(run, workdir="~/run")
    assert report.texts["train"]["tokens"]["source"]["per_word"] > 1
    with pytest.raises(
        ValueError, match="workdir=s3://b/run must be a local directory"
    ):
        vaswani_jax.check_data(run, workdir="s3://b/run")


def test_lines_with_codes_are_judged_by_their_languages(tmp_path: pathlib.Path) -> None:
    german, japanese = (texts.clean(name)["train"] for name in ("de", "ja"))
    pairs = [
        *german[:300],
        *((f">>ja<< {source}", target) for source, target in japanese[:300]),
    ]
    random.Random(0).shuffle(pairs)
    report = check(tmp_path, {"train": pairs}, **NO_HELD_OUT)
    kinds = {finding.kind for finding in report.findings}
    assert not kinds & {"other_script", "language"}, report.describe()
    wrong = [(source.removeprefix(">>ja<< "), target) for source, target in pairs]
    report = check(tmp_path, {"train": wrong}, **NO_HELD_OUT)
    assert "other_script" in {finding.kind for finding in report.findings}


def test_a_locale_of_an_unknown_script_is_not_judged(tmp_path: pathlib.Path) -> None:
    report = check(tmp_path, texts.splits(), target_locale="de_Goth")
    assert "other_script" not in {finding.kind for finding in report.findings}
