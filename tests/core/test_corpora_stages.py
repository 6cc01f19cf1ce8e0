"""Stages are read from texts and lists, and refused by name."""

import pytest

from tests.core.valid_config import refusal
from vaswani_jax.core import corpora_stages

NEWS = {"name": "news", "source": "news.en", "target": "news.de"}
CRAWL = {"name": "crawl", "source": "c/*.en.gz", "target": "c/*.de.gz"}


def test_stages_are_a_text_or_a_list():
    text = corpora_stages.stages_text(
        " 0:crawl=4  news=1;20_000 : news=1.50;".replace("_", "")
    )
    assert text == "0: crawl=4 news=1; 20000: news=1.5"
    listed = [
        {"batch": 0, "weights": {"crawl": 4, "news": 1}},
        {"batch": 20000, "weights": {"news": 1.5}},
    ]
    assert (
        corpora_stages.stages_text(listed) == text == corpora_stages.stages_text(text)
    )
    first, second = corpora_stages.parse_stages(text)
    assert first == corpora_stages.Stage(
        batch=0, weights=(("crawl", 4.0), ("news", 1.0))
    )
    assert second.batch == 20000


@pytest.mark.parametrize(
    ("stages", "rule"),
    [
        ("news=1", "a stage must be like 20000: news=1 crawl=2, got 'news=1'"),
        ("0: news", "name each corpus as NAME=WEIGHT, got '0: news'"),
        ("0: news=1 news=2", "name each corpus once, got '0: news=1 news=2'"),
        ("x: news=1", "the batch of a stage must be a whole number from 0, got 'x: "),
        ("-1: news=1", "the batch of a stage must be a whole number from 0"),
        ("٣: news=1", "the batch of a stage must be a whole number from 0"),
        ("3: news=٣", "the weight of 'news' must be a number from 0"),
        (
            "0: news=-1",
            "the weight of 'news' must be a number from 0, got '0: news=-1'",
        ),
        ("0: news=nan", "the weight of 'news' must be a number from 0"),
        ("0: news=0", "a stage must have a weight above 0, got '0: news=0'"),
        ("0:", "a stage must have a weight above 0"),
        ("5: news=1; 5: crawl=1", "batches of stages must rise, got 5 after 5"),
        (
            "5: nws=1",
            "batch 5 names the corpus 'nws', but config.data.corpora has news,",
        ),
        ([3], "a stage must have a batch and weights by corpus, got 3"),
        ([{"batch": 1}], "a stage must have a batch and weights by corpus"),
        ([{"batch": True, "weights": {"news": 1}}], "whole number from 0"),
        ([{"batch": 3, "weights": {"news": 10**400}}], "must be a number from 0"),
    ],
)
def test_a_stage_out_of_range_is_refused(stages, rule):
    text = refusal({"data.corpora": [NEWS, CRAWL], "data.stages": stages})
    assert text.startswith("config.data.stages") and rule in text


@pytest.mark.parametrize(
    ("old", "new", "num_batches", "may"),
    [
        ("", "5: news=1", 5, True),
        ("", "5: news=1", 6, False),
        ("5: news=1", "", 5, True),
        ("0: news=1; 9: crawl=1", "0: news=1; 9: news=2", 9, True),
        ("0: news=1; 9: crawl=1", "0: news=1; 9: news=2", 10, False),
        ("0: news=1", "0: news=2", 1, False),
        ("0: news=1; 9: crawl=1", "0: news=1; 8: crawl=1", 8, True),
        ("0: news=1; 9: crawl=1", "0: news=1; 8: crawl=1", 9, False),
    ],
)
def test_stages_that_a_run_has_not_reached_may_change(old, new, num_batches, may):
    assert corpora_stages.may_replace_stages(old, new, num_batches) is may
