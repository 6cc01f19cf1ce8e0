"""Bodies that mean nothing, or two things, are refused in their API's form."""

import json

import hypothesis
import pytest
from hypothesis import strategies

from vaswani_jax.service import messages

VALUES = strategies.recursive(
    strategies.none()
    | strategies.booleans()
    | strategies.integers()
    | strategies.floats()
    | strategies.text(),
    lambda inner: (
        strategies.lists(inner, max_size=3)
        | strategies.dictionaries(strategies.text(), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = ["text", "model", "n_best", "beam_size", "length_penalty", "prefix", "stream"]
OBJECTS = strategies.dictionaries(strategies.sampled_from([*FIELDS, "q", "x"]), VALUES)
JSON = (VALUES | OBJECTS).map(lambda value: json.dumps(value).encode())
BAD = [
    b"",
    b"[]",
    b"null",
    b'"text"',
    b"[" * 100_000,
    b'{"text":' * 5_000,
    b'{"text": "a", "text": "b"}',
    b'{"text": "a", "n_best": 1' + b"0" * 5000 + b"}",
    b'{"text": "a", "length_penalty": NaN}',
    b'{"text": "a", "length_penalty": 1e999}',
    b'{"text": "a", "length_penalty": -Infinity}',
    b'{"text": "\\ud800"}',
    b'{"text": ["a", "\\udc00b"]}',
    b'{"text": "a", "model": "\\ud800"}',
    b'{"text": "a", "\\ud800": 1}',
    b'{"text": "\xff"}',
    b'\xef\xbb\xbf{"text": "a"}',
    '{"text": "a"}'.encode("utf-16"),
    b'{"text": "a"} {}',
    b'{"text": "a", "__proto__": {}}',
    b'{"text": "a", "model": "../../etc/passwd"}',
]


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("route", ["v1/translate", "v1/score", "v1/attention"])
def test_a_bad_body_is_a_4xx_that_says_why(client, body, route):
    headers = {"content-type": "application/json"}
    answer = client.post(f"/{route}", content=body, headers=headers)
    assert answer.status_code in (400, 413, 422), answer.text
    error = answer.json()["error"]
    assert error["message"] and set(error) == {"message", "field"}


@pytest.mark.parametrize("body", BAD, ids=range(len(BAD)))
@pytest.mark.parametrize("route", ["translate", "detect"])
def test_a_bad_body_is_an_error_of_libretranslate(client, body, route):
    body = body.replace(b'"text"', b'"q"')
    headers = {"content-type": "application/json"}
    answer = client.post(f"/{route}", content=body, headers=headers)
    assert answer.status_code in (400, 413), answer.text
    assert isinstance(answer.json()["error"], str)


@hypothesis.given(
    strategies.sampled_from(["/v1/translate", "/v1/score", "/translate", "/detect"]),
    JSON | strategies.binary(),
    strategies.sampled_from(["application/json", "application/x-www-form-urlencoded"]),
)
@hypothesis.settings(
    max_examples=80,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
def test_no_body_makes_the_server_fail(client, route, body, kind):
    answer = client.post(route, content=body, headers={"content-type": kind})
    assert answer.status_code < 500, answer.text


@pytest.mark.parametrize(
    "text", ["\x00", "\x1b[31m", "a\x7f\u202eb", "\ufffe", "\U0010ffff"]
)
def test_odd_characters_are_text(client, text):
    answer = client.post("/v1/translate", json={"text": f"a{text}b"})
    [result] = answer.json()["results"]
    assert result["translations"][0]["text"] == f"a{text}b".upper()


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/xml", "multipart/form-data"]
)
def test_other_kinds_of_bodies_are_refused(client, kind):
    headers = {"content-type": kind}
    names = {"v1/translate": "header Content-Type", "translate": "application/json"}
    for route, name in names.items():
        answer = client.post(f"/{route}", content=b'{"text": "a"}', headers=headers)
        assert answer.status_code == 415 and name in answer.text


@pytest.mark.parametrize("route", ["translate", "score", "attention"])
@pytest.mark.parametrize(
    "kind",
    [None, "", "application/x-www-form-urlencoded", "text/json", "application/jsonl"],
)
def test_json_without_its_header_is_refused_with_the_name_of_the_header(
    client, kind, route
):
    headers = {} if kind is None else {"content-type": kind}
    answer = client.post(f"/v1/{route}", content=b'{"text": "a"}', headers=headers)
    assert answer.status_code == 415
    message = answer.json()["error"]["message"]
    assert f"got the type {kind or ''!r}:" in message
    assert message.endswith("send the header Content-Type: application/json")


@pytest.mark.parametrize(
    "kind",
    ["Application/JSON ; charset=utf-8", "application/vnd.a+json", "application/json"],
)
def test_json_has_its_type_in_all_spellings(client, kind):
    headers = {"content-type": kind}
    answer = client.post("/v1/translate", content=b'{"text": "a"}', headers=headers)
    assert answer.status_code == 200


def test_a_number_that_is_none_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        messages.read_json(b"[NaN]")
