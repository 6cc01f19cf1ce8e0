"""Corpora are read from files and lists, and refused by name."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.valid_config import parsed, refusal
from vaswani_jax.core import config, corpora, corpora_stages, parsing

NEWS = {"name": "news", "source": "news.en", "target": "news.de"}
CRAWL = {"name": "crawl", "source": "c/*.en.gz", "target": "c/*.de.gz"}
TOML = """
[[corpora]]
name = "news"
source = "news.en"
target = "news.de"
weight = 3

[[corpora]]
name = "crawl"
source = "c/*.en.gz"
target = "c/*.de.gz"
weight = 0.5
tag = "<crawl>"
noise_typos = 0.1
noise_copies = 4
"""
LISTED = [
    {**NEWS, "weight": 3},
    {**CRAWL, "weight": 0.5, "tag": "<crawl>", "noise_typos": 0.1, "noise_copies": 4},
]


def test_a_file_and_a_list_record_the_same(tmp_path):
    path = tmp_path / "corpora.toml"
    path.write_text(TOML)
    text = corpora.corpora_text(str(path))
    assert text == corpora.corpora_text(LISTED) == corpora.corpora_text(text)
    news, crawl = corpora.parse_corpora(text)
    assert (news.weight, news.tag, news.noise_copies) == (3.0, "", 1)
    assert (crawl.weight, crawl.tag, crawl.noise_typos) == (0.5, "<crawl>", 0.1)
    assert crawl.noise_copies == 4 and crawl.is_noisy and not news.is_noisy
    # A field that is added later changes no record.
    assert json.loads(text)[0] == {**NEWS, "weight": 3.0}
    changes = {"data.corpora": text, "data.user_symbols": "<crawl>"}
    assert parsed(changes).data.training_corpora == (news, crawl)


def test_no_corpora_are_an_empty_text():
    assert corpora.corpora_text("") == corpora.corpora_text([]) == ""
    assert corpora.parse_corpora("") == () and corpora_stages.parse_stages("") == ()
    assert corpora_stages.stages_text("") == corpora_stages.stages_text(" ") == ""


def test_a_run_that_was_recorded_before_has_no_corpora():
    record = config.flatten_record({"data": {"source": "text"}})
    names = ("corpora", "stages", "epoch_pairs", "corpora_temperature")
    assert [record[f"data.{name}"] for name in names] == ["", "", 0, 1.0]


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({**NEWS, "wight": 1}, "corpus 'news': unknown field 'wight' (known: name, "),
        ({**NEWS, "source": ""}, "corpus 'news': source must not be empty"),
        ({"source": "a", "target": "b"}, "corpus 2: name must not be empty"),
        ({**NEWS, "name": "a b"}, "corpus 'a b': name must be letters, digits"),
        ({**NEWS, "name": 3}, "corpus 3: name must be a string, got 3"),
        ({**NEWS, "weight": -1}, "corpus 'news': weight must be at least 0, got -1"),
        ({**NEWS, "weight": "2"}, "corpus 'news': weight must be a number, got '2'"),
        ({**NEWS, "weight": True}, "corpus 'news': weight must be a number, got True"),
        ({**NEWS, "weight": float("inf")}, "'news': weight must be a number, got inf"),
        ({**NEWS, "weight": 10**400}, "corpus 'news': weight must be a number, got 10"),
        ({**NEWS, "noise_upper": 2}, "'news': noise_upper must be in [0, 1], got 2"),
        (
            {**NEWS, "noise_copies": 0},
            "'news': noise_copies must be at least 1, got 0",
        ),
        ({**NEWS, "noise_copies": 1.5}, "noise_copies must be a whole number, got"),
        (
            {**NEWS, "noise_copies": float("inf")},
            "'news': noise_copies must be a whole number, got inf",
        ),
        (
            {**NEWS, "noise_copies": float("nan")},
            "'news': noise_copies must be a whole number, got nan",
        ),
        ({**NEWS, "noise_copies": 2}, "noise_copies=2 needs one of noise_upper"),
        ({**NEWS, "source": "~nobody-here/a"}, "corpus 'news': source: ~nobody-here/a"),
        ({**NEWS, "target": "-#2"}, "'news': target must be files, not standard input"),
        (CRAWL, "has the corpus 'crawl' twice"),
        ("news", "corpus 2 must have fields (name, source"),
    ],
)
def test_a_field_out_of_its_range_is_refused_by_name(fields, rule):
    text = refusal({"data.corpora": [CRAWL, fields]})
    assert text.startswith("config.data.corpora") and rule in text


def test_all_corpora_have_a_weight_or_none_has():
    text = refusal({"data.corpora": [NEWS, {**CRAWL, "weight": 2}]})
    assert "all corpora have a weight or none has, but 'news' has none" in text
    corpora_without = [{**NEWS, "weight": 0}, {**CRAWL, "weight": 0}]
    assert "one weight must be above 0" in refusal({"data.corpora": corpora_without})


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("x = 1", "must have [[corpora]] alone, got 'x'"),
        ("corpora = 3", "must have one [[corpora]] or several"),
        ("", "must have one [[corpora]] or several"),
        ("[[corpora", "is not a TOML file:"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, content, reason):
    path = tmp_path / "corpora.toml"
    path.write_text(content)
    assert f"config.data.corpora={path} {reason}" in refusal(
        {"data.corpora": str(path)}
    )


def test_a_missing_file_is_refused():
    text = refusal({"data.corpora": "none.toml"})
    assert text.startswith("config.data.corpora=none.toml cannot be read: No such file")
    assert "is not a JSON list" in refusal({"data.corpora": "[3"})
    assert "config.data.corpora must be a text, got 3" in refusal({"data.corpora": 3})


@pytest.mark.parametrize(
    ("key", "value"),
    [("stages", "0: news=1"), ("epoch_pairs", 9), ("corpora_temperature", 5.0)],
)
def test_a_mixture_needs_corpora(key, value):
    text = refusal({f"data.{key}": value})
    assert text == f"config.data.{key} needs config.data.corpora, got {value!r}"
    parsed({f"data.{key}": value, "data.corpora": [NEWS, CRAWL]})


def test_corpora_are_text_files():
    text = refusal({"data.source": "cldr", "data.corpora": [NEWS]})
    assert text.startswith("config.data.corpora needs config.data.source=text")


def test_corpora_replace_the_two_training_files():
    changes = {"data.train_source": "", "data.train_target": ""}
    assert "config.data.train_source must not be empty" in refusal(changes)
    assert parsed({**changes, "data.corpora": [NEWS]}).data.train_source == ""


def test_a_temperature_is_for_corpora_without_weights():
    weighted = [{**NEWS, "weight": 1}, {**CRAWL, "weight": 2}]
    text = refusal({"data.corpora": weighted, "data.corpora_temperature": 5.0})
    assert "config.data.corpora_temperature is for corpora without weights" in text


def test_a_temperature_whose_shares_cannot_be_computed_is_refused():
    text = refusal({"data.corpora": [NEWS, CRAWL], "data.corpora_temperature": 1e-6})
    assert text.startswith("config.data.corpora_temperature must be")


def test_a_tag_is_among_the_user_symbols():
    tagged = {"data.corpora": [{**NEWS, "tag": "<news>"}]}
    text = refusal({**tagged, "data.user_symbols": "<2de>"})
    rule = "corpus 'news': tag '<news>' must be among config.data.user_symbols"
    assert rule in text and text.endswith("got '<2de>'")
    assert parsed({**tagged, "data.user_symbols": "<2de>,<news>"})


def test_prepared_data_knows_neither_weights_nor_names_of_files():
    one, other = (
        corpora.prepared_part(
            corpora.corpora_text([{**CRAWL, **changes, "tag": "<c>"}])
        )
        for changes in ({"weight": 3}, {"source": "elsewhere.en"})
    )
    assert one == other == '[{"name": "crawl", "tag": "<c>"}]'
    assert corpora.prepared_part("") == ""


def test_files_may_move_when_a_run_resumes():
    was, moved, lighter = (
        corpora.corpora_text([{**NEWS, "weight": 1, **changes}])
        for changes in ({}, {"source": "elsewhere.en"}, {"weight": 2})
    )
    assert corpora.may_replace_corpora(was, moved, 9)
    assert not corpora.may_replace_corpora(was, lighter, 0)
    assert not corpora.may_replace_corpora(was, "", 0)


def test_changes_are_described_with_both_values():
    was = corpora.corpora_text([NEWS, CRAWL])
    now = corpora.corpora_text([{**CRAWL, "tag": "<c>"}, {**NEWS, "source": "m.en"}])
    assert corpora.describe_corpora_change(was, now) == (
        "their order is crawl, news, was news, crawl; the tag of 'crawl' is '<c>', was "
        "''; the source of 'news' is 'm.en', was 'news.en'"
    )
    other = corpora.corpora_text([NEWS, {**CRAWL, "name": "web"}])
    assert corpora.describe_corpora_change(was, other) == (
        "'web' is new; 'crawl' is missing"
    )


def test_a_python_config_takes_lists():
    from configs import own_text

    values = own_text.get_config()
    values.data.source_locale, values.data.target_locale = "en", "de"
    values.data.corpora = [NEWS, CRAWL]
    values.data.stages = [{"batch": 7, "weights": {"news": 1}}]
    data = parsing.parse(values).data
    assert [corpus.name for corpus in data.training_corpora] == ["news", "crawl"]
    assert data.stages == "7: news=1"


@given(
    st.lists(
        st.tuples(
            st.from_regex(corpora.NAME, fullmatch=True),
            st.floats(0, 1e9, exclude_min=True),
        ),
        min_size=1,
        unique_by=lambda item: item[0],
    ),
    st.sets(st.integers(0, 10**9), min_size=1),
)
def test_any_weights_are_recorded_exactly(weights, batches):
    stages = [{"batch": batch, "weights": dict(weights)} for batch in sorted(batches)]
    parsed_stages = corpora_stages.parse_stages(corpora_stages.stages_text(stages))
    assert [stage.batch for stage in parsed_stages] == sorted(batches)
    assert all(stage.weights == tuple(weights) for stage in parsed_stages)
    listed = [
        {"name": name, "source": "s", "target": "t", "weight": weight}
        for name, weight in weights
    ]
    text = corpora.corpora_text(listed)
    assert [corpus.weight for corpus in corpora.parse_corpora(text)] == [
        weight for _, weight in weights
    ]


@given(st.text())
def test_any_text_is_read_or_refused_in_one_line(text):
    for read in (corpora_stages.stages_text, corpora.corpora_text):
        try:
            canonical = read(text)
        except ValueError as error:
            assert re.match(r"config\.data\.(stages|corpora)", str(error))
        else:
            assert read(canonical) == canonical
