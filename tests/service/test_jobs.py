"""Requests become jobs; lines that a model cannot take are refused."""

import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine, error_of, post
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.service.limits import Search


def test_the_search_is_what_a_request_asks_for():
    engine = ShoutingEngine(**{"search.length_penalty": 0.5})
    with shouting.client_of(engine) as client:
        post(client, "translate", text="a")
        post(client, "translate", text="a", n_best=3)
        post(client, "translate", text="a", beam_size=4, length_penalty=1)
    assert engine.searches == [
        Search(beam_size=2, n_best=1, length_penalty=0.5),
        Search(beam_size=4, n_best=3, length_penalty=0.5),
        Search(beam_size=4, n_best=1, length_penalty=1.0),
    ]


@pytest.mark.parametrize(
    ("route", "body", "field", "number"),
    [
        ("score", {"text": "a\nb", "translation": "c"}, "text", 1),
        ("score", {"text": ["a", "b"], "translation": ["c", "d\re"]}, "translation", 2),
        ("attention", {"text": "a\u2028b"}, "text", 1),
        ("attention", {"text": "a", "translation": "b\nc"}, "translation", 1),
    ],
)
def test_a_line_has_no_line_break(client, route, body, field, number):
    error = error_of(post(client, route, **body), 422)
    message = (
        f"{field}, number {number}: it has 2 lines, and one is allowed: "
        "send each by itself"
    )
    assert error == {"message": message, "field": field}


def test_a_translation_that_is_no_tree_is_refused_by_its_field(monkeypatch):
    encode = Vocabulary.encode

    def encode_trees(self, lines, *, target=False):
        if target:
            raise ValueError("a tree begins with a bracket")
        return encode(self, lines)

    monkeypatch.setattr(Vocabulary, "encode", encode_trees)
    engine = ShoutingEngine()
    with shouting.client_of(engine) as client:
        error = error_of(post(client, "score", text="a", translation="b"), 422)
    assert error == {"message": "a tree begins with a bracket", "field": "translation"}


LETTERS = "a b c d e f g h"


@pytest.mark.parametrize(
    ("route", "body", "field", "number"),
    [
        ("score", {"text": ["a", LETTERS], "translation": ["c", "d"]}, "text", 2),
        ("score", {"text": "a", "translation": LETTERS}, "translation", 1),
        ("attention", {"text": LETTERS}, "text", 1),
        ("attention", {"text": "a", "translation": LETTERS}, "translation", 1),
        ("translate", {"text": ["a", "b"], "prefix": ["", LETTERS]}, "prefix", 2),
    ],
)
def test_a_line_of_too_many_subwords_is_refused_by_its_field(
    route, body, field, number
):
    limits = {"search.max_source_tokens": 6, "search.max_extra_tokens": 1}
    with shouting.client_of(ShoutingEngine(**limits)) as client:
        error = error_of(post(client, route, **body), 422)
    assert error["field"] == field
    assert error["message"].startswith(f"{field}, number {number}: ")
    assert "config" not in error["message"]


def test_texts_are_logged_only_if_that_is_asked_for(caplog):
    caplog.set_level("DEBUG", "vaswani_jax")
    with shouting.client_of() as client:
        post(client, "translate", text="a secret")
        client.post(
            "/translate", data={"q": "a secret", "source": "en", "target": "de"}
        )
        client.get("/v1/page", params={"text": "a secret"})
    assert "secret" not in caplog.text
    with shouting.client_of(log_texts=True) as client:
        post(client, "translate", text="a secret")
    assert "a secret" in caplog.text
