"""The routes under /v1 answer with models, and refuse wrong requests."""

import dataclasses
import json
import threading
from concurrent import futures

import pytest

from tests import settings
from tests.service import shouting
from tests.service.shouting import ShoutingEngine, error_of, post
from vaswani_jax.inference.phrases import PhraseFinder
from vaswani_jax.service.app import Service
from vaswani_jax.service.limits import OverloadedError, TooLateError
from vaswani_jax.service.models import Models, ServedModel


def test_one_text_is_translated_with_its_paragraphs(client):
    text = "\tA dog.  It barks! \r\n\r\n one\u2028b\n"
    answer = post(client, "translate", text=text).json()
    assert {key: answer[key] for key in ("model", "source", "target")} == {
        "model": "shouting",
        "source": "en",
        "target": "de",
    }
    [result] = answer["results"]
    [translation] = result["translations"]
    assert translation["text"] == "\tA DOG. IT BARKS! \r\n\r\n ONE\u2028B\n"
    assert translation["score"] == -4.0
    pieces = [
        (
            text[entry["source_begin"] : entry["source_end"]],
            translation["text"][entry["target_begin"] : entry["target_end"]],
        )
        for entry in result["sentences"]
    ]
    assert pieces == [
        ("A dog.", "A DOG."),
        ("It barks!", "IT BARKS!"),
        ("one", "ONE"),
        ("b", "B"),
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\t\r\n \u3000"])
def test_a_text_without_a_sentence_is_its_own_translation(client, text):
    [result] = post(client, "translate", text=text).json()["results"]
    assert result == {"translations": [{"text": text, "score": 0.0}], "sentences": []}


def test_many_texts_have_their_n_best_and_prefixes(client):
    body = {
        "text": ["A dog barks. It runs.", "a", "the one"],
        "n_best": 2,
        "prefix": ["x", "", "y"],
    }
    results = post(client, "translate", **body).json()["results"]
    texts = [[each["text"] for each in result["translations"]] for result in results]
    # The prefix is that of the first sentence; the last has one translation alone.
    assert texts == [
        ["xA DOG BARKS. IT RUNS.", "xA DOG BARKS.! IT RUNS.!"],
        ["A", "A!"],
        ["yTHE ONE"],
    ]


def test_words_are_aligned_by_characters_of_both_texts(client):
    body = {"text": ["ab cd.\n\n  ef gh"], "alignment": True}
    [result] = post(client, "translate", **body).json()["results"]
    text = result["translations"][0]["text"]
    words = [
        [
            (body["text"][0][begin:end], text[target_begin:target_end])
            for begin, end, target_begin, target_end in entry["alignment"]
        ]
        for entry in result["sentences"]
    ]
    assert words == [[("ab", "AB"), ("cd.", "CD.")], [("ef", "EF"), ("gh", "GH")]]


def test_the_sentences_that_lack_a_term_name_it(client):
    body = {"text": "A bed. A dog runs.", "glossary": {"bed": "BED", "dog": "a b"}}
    answer = post(client, "translate", **body)
    [result] = answer.json()["results"]
    missing = [entry["missing_phrases"] for entry in result["sentences"]]
    assert missing == [[], ["a b"]]
    streamed = read_events(post(client, "translate", stream=True, **body).text)
    assert [data.get("missing_phrases") for _, data in streamed] == [*missing, None]
    assert streamed[-1][1] == answer.json()
    # Without a glossary there is no such field.
    [plain] = post(client, "translate", text="A dog").json()["results"]
    assert "missing_phrases" not in plain["sentences"][0]


def test_the_check_of_a_long_glossary_holds_no_other_request(client, monkeypatch):
    is_checked, is_answered = threading.Event(), threading.Event()
    check_glossary = PhraseFinder.check_glossary

    def wait(finder):
        is_checked.set()
        assert is_answered.wait(5)
        check_glossary(finder)

    monkeypatch.setattr(PhraseFinder, "check_glossary", wait)
    body = {"text": "A bed", "glossary": {"bed": "BED"}}
    with futures.ThreadPoolExecutor(1) as pool:
        slow = pool.submit(post, client, "translate", **body)
        assert is_checked.wait(5)
        assert post(client, "translate", text="A dog").status_code == 200
        is_answered.set()
        [result] = slow.result().json()["results"]
    assert result["sentences"][0]["missing_phrases"] == []


def test_a_later_sentence_names_the_tags_that_it_is_translated_with():
    engine = ShoutingEngine(**settings.TAGGED)
    texts = ["<x> A dog barks. It runs.\n>>fra<< One.\n<x> Two. Three.", "Four."]
    with shouting.client_of(engine) as client:
        answer = post(client, "translate", text=texts).json()
        events = read_events(post(client, "translate", text=texts, stream=True).text)
        lines = engine.lines[:6]
        tagged_sentences = [
            entry.get("inherited_tags", "")
            + text[entry["source_begin"] : entry["source_end"]]
            for text, result in zip(texts, answer["results"], strict=True)
            for entry in result["sentences"]
        ]
        for sentence in tagged_sentences:
            post(client, "translate", text=sentence)
    assert [entry.get("inherited_tags") for _, entry in events[:-1]] == [
        *(None, "<x> ", None, ">>fra<< ", ">>fra<< <x> ", None)
    ]
    assert events[-1][1] == answer
    # With them before it, a sentence by itself is translated as in its text.
    assert tagged_sentences == lines == engine.lines[-6:]


def test_the_tag_of_the_target_language_is_not_inherited():
    engine = ShoutingEngine(**settings.TWO_TARGETS)
    with shouting.client_of(engine) as client:
        body = {"text": "A dog. It runs.", "target": "fr"}
        [result] = post(client, "translate", **body).json()["results"]
    assert engine.lines == ["<2fr> A dog.", "<2fr> It runs."]
    assert not any("inherited_tags" in entry for entry in result["sentences"])


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 422, "text"),
        ({"text": []}, 422, "text"),
        ({"text": 3}, 422, "text"),
        ({"text": ["a", None]}, 422, "text"),
        ({"text": "a", "nbest": 2}, 422, "nbest"),
        ({"text": "a", "n_best": 4}, 422, "n_best"),
        ({"text": "a", "n_best": 0}, 422, "n_best"),
        ({"text": "a", "n_best": True}, 422, "n_best"),
        ({"text": "a", "n_best": "2"}, 422, "n_best"),
        ({"text": "a", "n_best": 3, "beam_size": 2}, 422, "n_best"),
        ({"text": "a", "beam_size": 3}, 422, "beam_size"),
        ({"text": "a", "length_penalty": 2.5}, 422, "length_penalty"),
        ({"text": "a", "length_penalty": -1}, 422, "length_penalty"),
        ({"text": "a", "prefix": ["a", "b"]}, 422, "prefix"),
        ({"text": "a", "prefix": "a\nb"}, 422, "prefix"),
        ({"text": "a", "glossary": {"a": 1}}, 422, "glossary"),
        ({"text": "a", "glossary": {"a": " "}}, 422, "glossary"),
        ({"text": "a", "glossary": {"b": "x"}}, 422, "glossary"),
        ({"text": "a", "glossary": {"a": "b", " a": "c"}}, 422, "glossary"),
        ({"text": "a", "glossary": {"a": "a" * 200}}, 413, "glossary"),
        ({"text": "a", "model": "none"}, 422, "model"),
        ({"text": "a", "source": "de"}, 422, "source"),
        ({"text": "a", "target": "fr"}, 422, "target"),
        ({"text": "a" * 201}, 413, "text"),
        ({"text": "a" * 100, "prefix": "a" * 101}, 413, "text"),
        ({"text": ["a"] * 5}, 413, "text"),
        ({"text": "a\n" * 9}, 413, "text"),
        ({"text": ["a\n" * 5] * 2, "stream": True}, 413, "text"),
    ],
)
def test_what_is_wrong_is_refused_with_its_field(client, body, status, field):
    assert error_of(post(client, "translate", **body), status)["field"] == field


def test_an_unknown_name_is_answered_with_those_that_there_are(client):
    model = error_of(post(client, "translate", text="a", model="x"), 422)
    assert model["message"] == "there is no model 'x', there is shouting"
    target = error_of(
        post(client, "translate", text="a", source="en", target="fr"), 422
    )
    assert target["message"] == ("no model translates from 'en' to 'fr', there is de")


def test_a_stream_has_an_event_for_each_sentence_and_the_whole_answer(client):
    body = {"text": ["A dog barks. It runs.", "e"], "n_best": 2, "alignment": True}
    answer = post(client, "translate", stream=True, **body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = read_events(answer.text)
    assert [name for name, _ in events] == ["sentence"] * 3 + ["done"]
    sentences = [data for _, data in events[:3]]
    assert [data["text_index"] for data in sentences] == [0, 0, 1]
    assert [data["source"] for data in sentences] == ["A dog barks.", "It runs.", "e"]
    assert [data["target"] for data in sentences] == ["A DOG BARKS.", "IT RUNS.", "E"]
    answer = post(client, "translate", **body).json()
    assert events[3][1] == answer
    entries = [entry for result in answer["results"] for entry in result["sentences"]]
    for data, entry in zip(sentences, entries, strict=True):
        assert {key: data[key] for key in entry} == entry


def test_a_stream_without_a_sentence_is_done_at_once(client):
    answer = post(client, "translate", text=" ", stream=True)
    assert [name for name, _ in read_events(answer.text)] == ["done"]


def read_events(text):
    events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        events.append(
            (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        )
    return events


@pytest.mark.parametrize(
    ("error", "status"),
    [(OverloadedError(2.6), 503), (TooLateError(), 504), (ValueError("why"), 422)],
)
@pytest.mark.parametrize("route", ["translate", "score", "attention", "stream"])
def test_what_an_engine_refuses_has_its_status(error, status, route):
    engine = ShoutingEngine()
    engine.error = error
    body = {"text": "a"} | ({"translation": "b"} if route == "score" else {})
    if route == "stream":
        route, body["stream"] = "translate", True
    with shouting.client_of(engine) as client:
        answer = post(client, route, **body)
    error_of(answer, status)
    assert answer.headers.get("retry-after") == ("3" if status == 503 else None)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (TooLateError(), 504, "too long"),
        (RuntimeError("RESOURCE_EXHAUSTED"), 500, "the server failed"),
    ],
)
def test_a_failure_amid_a_stream_is_its_last_event(error, status, message):
    engine = ShoutingEngine()
    translate = engine.translate

    async def fail(lines, **options):
        if lines == ["It runs."]:
            raise error
        return await translate(lines, **options)

    engine.translate = fail
    with shouting.client_of(engine) as client:
        events = read_events(
            post(client, "translate", text="A dog barks. It runs.", stream=True).text
        )
    assert [name for name, _ in events] == ["sentence", "error"]
    assert events[1][1]["status"] == status
    assert message in events[1][1]["error"]["message"]


def test_pairs_are_scored(client):
    answer = post(client, "score", text=["a", "b"], translation=["A", "b"]).json()
    assert [result["score"] for result in answer["results"]] == [0.0, -9.0]
    assert answer["results"][0]["tokens"][1] == {"text": "</s>", "log_prob": -2.0}
    assert error_of(post(client, "score", text=["a"], translation=["A", "B"]), 422)


def test_attention_has_all_layers_and_heads(client):
    answer = post(client, "attention", text="ab").json()
    assert answer["translation"] == "AB"
    assert len(answer["memory"]) == 2
    too_long = post(client, "attention", text="xa" * 100)
    assert error_of(too_long, 422)["field"] == "text"


@pytest.mark.parametrize(("num_ids", "status"), [(128, 200), (129, 422)])
def test_attention_of_a_long_translation_is_refused(num_ids, status):
    class WordyEngine(ShoutingEngine):
        async def attend(self, sources, targets=None, **options):
            pairs = await super().attend(sources, targets, **options)
            return [dataclasses.replace(pair, ids=(5,) * num_ids) for pair in pairs]

    with shouting.client_of(WordyEngine()) as client:
        answer = post(client, "attention", text="ab")
    assert answer.status_code == status
    if status == 422:
        error = answer.json()["error"]
        assert error["field"] == "text"
        assert "its translation has 128 subwords, and at most 127" in error["message"]


def test_no_more_translations_are_announced_than_a_search_finds():
    limits = dataclasses.replace(shouting.LIMITS, beam_sizes=(1, 2), n_best=5)
    models = Models([ServedModel(ShoutingEngine(limits=limits))], limits=limits)
    with shouting.TestClient(Service(models), "http://localhost") as client:
        assert client.get("/v1/models").json()["limits"]["n_best"] == 2


def test_tags_choose_the_language_and_are_no_part_of_a_text():
    engine = ShoutingEngine(**settings.TWO_TARGETS)
    with shouting.client_of(engine) as client:
        body = {"text": "ab cd", "target": "fr", "alignment": True}
        answer = post(client, "translate", **body).json()
        [languages] = client.get("/v1/languages").json()["languages"]
    assert answer["target"] == "fr"
    assert engine.lines[0] == "<2fr> ab cd"
    [result] = answer["results"]
    assert result["translations"][0]["text"] == "AB CD"
    [sentence] = result["sentences"]
    assert sentence["alignment"] == [[0, 2, 0, 2], [3, 5, 3, 5]]
    assert languages == {"code": "en", "name": "English", "targets": ["de", "fr"]}


def test_the_models_and_the_limits_are_listed(client):
    answer = client.get("/v1/models").json()
    [entry] = answer["models"]
    assert entry["name"] == "shouting"
    assert entry["directions"] == [{"source": "en", "target": "de"}]
    assert entry["beam_sizes"] == [2, 4]
    assert answer["limits"]["characters"] == 200
    assert answer["limits"]["length_penalties"] == [0.0, 2.0]


def test_a_page_without_a_text_is_refused(client):
    assert error_of(client.get("/v1/page"), 422)["field"] == "text"
    assert error_of(client.get("/v1/page", params={"text": " "}), 422)
