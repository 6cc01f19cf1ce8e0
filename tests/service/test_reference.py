"""The reference shows every route and message, and loads nothing."""

import re

from vaswani_jax.service import reference


def test_every_route_and_message_is_shown(client):
    api = client.get("/openapi.json").json()
    answer = client.get("/docs")
    for path in api["paths"]:
        assert f" {path}</code>" in answer.text
    for name in api["components"]["schemas"]:
        assert f'id="{name}"' in answer.text
    assert "&quot;text&quot;: &quot;3 hours ago&quot;" in answer.text
    assert not re.search(r"<script|src=|https?://", answer.text)
    links = re.findall(r'href="#(\w+)"', answer.text)
    assert links and all(f'id="{name}"' in answer.text for name in links)


def test_every_field_of_a_body_without_a_name_is_shown(client):
    paths = client.get("/openapi.json").json()["paths"]
    text = client.get("/docs").text
    fields = {}
    for path, methods in paths.items():
        body = methods.get("post", {}).get("requestBody", {"content": {}})
        for content in body["content"].values():
            fields[path] = list(content["schema"].get("properties", {}))
    assert {"q", "format", "alternatives", "api_key"} <= set(fields["/translate"])
    for path, names in fields.items():
        section = text.partition(f"POST {path}</code></h2>")[2].partition("<h2")[0]
        for name in names:
            assert re.search(rf"<code>{name}\??</code>", section), (path, name)


def test_names_are_escaped():
    api = {"info": {"title": "<b>"}, "paths": {}}
    assert "<h1>&lt;b&gt;</h1>" in reference.render(api)
