"""LibreTranslate's clients get the answers that they know."""

import json
import urllib.error

import pytest
from libretranslatepy import LibreTranslateAPI

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from tests.service.sockets import served
from vaswani_jax.service.keys import Keys

KEY = "a-key-of-this-server"
REQUEST = {"q": "a", "source": "en", "target": "de"}


def test_the_published_client_translates():
    service = shouting.service_of(
        ShoutingEngine(**{"data.target_locale": "de"}), keys=Keys([KEY])
    )
    with served(service) as port:
        url = f"http://localhost:{port}"
        client = LibreTranslateAPI(url, api_key=KEY)
        text = "Eins & zwei?\n\nä=1"
        assert client.translate(text, "en", "de") == text.upper()
        assert client.detect("abc") == [{"confidence": 100.0, "language": "en"}]
        assert client.languages() == [
            {"code": "en", "name": "English", "targets": ["de"]},
            {"code": "de", "name": "German", "targets": []},
        ]
        with pytest.raises(urllib.error.HTTPError) as raised:
            client.translate(text, "en", "xx")
        assert raised.value.code == 400
        assert "'xx'" in json.loads(raised.value.read())["error"]
        with pytest.raises(urllib.error.HTTPError) as raised:
            LibreTranslateAPI(url, api_key="wrong").translate(text, "en", "de")
        assert raised.value.code == 403
        assert json.loads(raised.value.read()) == {"error": "Invalid API key"}


def test_a_list_has_a_list_of_everything(client):
    body = {"q": ["a", "b"], "source": "auto", "target": "de", "alternatives": 1}
    assert client.post("/translate", json=body).json() == {
        "translatedText": ["A", "B"],
        "detectedLanguage": [{"confidence": 100.0, "language": "en"}] * 2,
        "alternatives": [["A!"], ["B!"]],
    }


def test_a_text_has_one_of_each(client):
    form = {**REQUEST, "source": "auto", "alternatives": "2", "format": "text"}
    for answer in (
        client.post("/translate", data=form),
        client.post("/translate", params=form),
    ):
        assert answer.json() == {
            "translatedText": "A",
            "detectedLanguage": {"confidence": 100.0, "language": "en"},
            "alternatives": ["A!", "A!!"],
        }
    assert client.post("/translate", json=REQUEST).json() == {"translatedText": "A"}


def test_a_form_may_have_several_texts(client):
    form = {**REQUEST, "q": ["a", "b"]}
    assert client.post("/translate", data=form).json() == {"translatedText": ["A", "B"]}
    answer = client.post("/translate", data={**REQUEST, "target": ["de", "fr"]})
    assert answer.status_code == 400
    assert answer.json() == {"error": "Invalid request: 'target' is repeated"}


def test_a_text_in_the_target_language_comes_back_as_it_is(client):
    for q in ("<b>a</b>", ["a", "b"]):
        body = {"q": q, "source": "auto", "target": "en", "format": "html"}
        answer = client.post("/translate", json=body).json()
        detected = {"confidence": 100.0, "language": "en"}
        body |= {"format": "text", "alternatives": 1}
        more = client.post("/translate", json=body).json()
        alternatives = [] if isinstance(q, str) else [[], []]
        assert more == {**answer, "alternatives": alternatives}
        assert answer == {
            "translatedText": q,
            "detectedLanguage": detected if isinstance(q, str) else [detected] * 2,
        }


@pytest.mark.parametrize(
    ("source", "target", "status"),
    [
        ("zh_Hans", "zh", 200),
        ("zh_Hans", "zh-Hans", 200),
        ("zh_Hans", "zh-CN", 200),
        ("zh_Hans", "zh-Hant", 400),
        ("zh_Hans", "zh-TW", 400),
        ("zh-Hant", "zh-TW", 200),
        ("zh_TW", "zh-Hant", 200),
        ("zh_TW", "zh-HK", 400),
        ("en-GB", "en-US", 400),
    ],
)
def test_a_text_in_another_variant_of_the_target_language_is_refused(
    source, target, status
):
    locales = {"data.source_locale": source, "data.target_locale": "de"}
    with shouting.client_of(ShoutingEngine(**locales)) as client:
        body = {"q": "a", "source": "auto", "target": target}
        answer = client.post("/translate", json=body)
    assert answer.status_code == status
    if status == 200:
        assert answer.json()["translatedText"] == "a"
    else:
        name = source.replace("_", "-")
        assert f"no model translates from '{name}' to '{target}'" in answer.text


def test_tags_of_html_stay(client):
    body = {**REQUEST, "q": ["<p>a &amp; <b>b</b></p>", "c"], "format": "html"}
    answer = client.post("/translate", json=body).json()
    assert answer == {"translatedText": ["<p>A &amp; <b>B</b></p>", "C"]}


@pytest.mark.parametrize(
    "change",
    [
        {"q": ""},
        {"q": None},
        {"q": []},
        {"q": [1]},
        {"q": ["a"] * 5},
        {"q": "a" * 201},
        {"source": "xx"},
        {"source": 3},
        {"target": ""},
        {"target": "en"},
        {"format": "pdf"},
        {"format": 3},
        {"alternatives": "x"},
        {"alternatives": 1.5},
        {"alternatives": 10**30},
        {"alternatives": 9},
        {"unknown": 1},
        {"q": "\udc80"},
    ],
)
def test_what_is_wrong_is_a_400_with_its_reason(client, change):
    content = json.dumps({**REQUEST, **change})
    headers = {"content-type": "application/json"}
    answer = client.post("/translate", content=content, headers=headers)
    assert answer.status_code == 400
    assert isinstance(answer.json()["error"], str)


def test_too_many_alternatives_are_named_as_the_client_names_them(client):
    answer = client.post("/translate", json={**REQUEST, "alternatives": 9})
    assert answer.json()["error"] == "alternatives must be at most 2, got 9"


def test_the_key_is_in_the_body_or_in_the_header():
    with shouting.client_of(keys=Keys([KEY])) as client:
        assert client.post("/translate", json=REQUEST).status_code == 400
        assert client.post("/detect", json={"q": "a"}).status_code == 400
        for key in ("wrong", 3, ["a"]):
            answer = client.post("/translate", json={**REQUEST, "api_key": key})
            assert answer.status_code == 403
        answer = client.post("/translate", json={**REQUEST, "api_key": KEY})
        assert answer.status_code == 200
        headers = {"Authorization": f"Bearer {KEY}"}
        answer = client.post("/translate", json=REQUEST, headers=headers)
        assert answer.status_code == 200
        assert client.get("/frontend/settings").json()["keyRequired"]


def test_the_settings_name_the_first_direction(client):
    answer = client.get("/frontend/settings").json()
    assert answer["charLimit"] == 200
    assert not answer["keyRequired"]
    assert answer["language"]["target"] == {"code": "de", "name": "German"}
