"""The file of a page needs nothing else, and no text of a user becomes HTML."""

import base64
import dataclasses
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from tests.pages import samples
from vaswani_jax.pages import contents, html

HOSTILE = "</script><img src=x onerror=alert(1)><!--"


class Parser(HTMLParser):
    """Collects the elements of a page, and the text of its scripts and styles."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.texts = {}
        self.name = None

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.name = dict(attrs).get("type", tag)

    def handle_endtag(self, tag):
        self.name = None

    def handle_data(self, data):
        if self.name:
            self.texts[self.name] = self.texts.get(self.name, "") + data


def parse(text):
    parser = Parser()
    parser.feed(text)
    parser.close()
    return parser


@pytest.fixture(scope="module")
def text():
    return html.render(samples.page())


def hash_of(text):
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def test_the_data_of_the_file_is_the_json_of_the_page(text):
    data = json.loads(parse(text).texts["application/json"])
    assert data == json.loads(json.dumps(contents.to_json(samples.page())))


def test_the_policy_lets_only_this_script_and_this_style_run(text):
    parser = parse(text)
    [policy] = [
        attributes["content"]
        for tag, attributes in parser.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives == {
        "default-src": "'none'",
        "script-src": hash_of(parser.texts["script"]),
        "style-src": hash_of(parser.texts["style"]),
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_the_file_names_no_other_file(text):
    for _, attributes in parse(text).tags:
        assert not {"src", "srcset", "action", "style"} & set(attributes)
        assert attributes.get("href", "#")[:5] in ("data:", "#main", "#")
        assert not [name for name in attributes if name.startswith("on")]
    style = parse(text).texts["style"]
    assert "url(" not in style and "@import" not in style


def test_a_hostile_text_ends_no_script_and_opens_no_element():
    page = samples.page()
    view = page.sentences[0].views[0]
    attention = dataclasses.replace(
        view.attention, source=(HOSTILE, *view.attention.source[1:])
    )
    view = dataclasses.replace(view, text=HOSTILE, attention=attention)
    sentence = dataclasses.replace(page.sentences[0], text=HOSTILE, views=(view,))
    hostile = dataclasses.replace(page, title=HOSTILE, sentences=(sentence,))
    rendered = html.render(hostile)
    parser = parse(rendered)
    assert [tag for tag, _ in parser.tags] == [
        tag for tag, _ in parse(html.render(page)).tags
    ]
    assert "<img" not in rendered
    data = json.loads(parser.texts["application/json"])
    assert data["sentences"][0]["text"] == HOSTILE == data["title"]


def test_equal_pages_have_equal_bytes(text):
    assert html.render(samples.page()) == text != html.render(samples.page(seed=1))


def test_a_number_that_is_not_finite_is_refused():
    page = samples.page()
    view = dataclasses.replace(page.sentences[0].views[0], log_probs=(float("nan"),))
    sentence = dataclasses.replace(page.sentences[0], views=(view,))
    with pytest.raises(ValueError, match="not JSON compliant"):
        html.render(dataclasses.replace(page, sentences=(sentence,)))


def test_a_size_is_in_bytes_and_at_most_20_million():
    html.check_size("x" * 19_999_998 + "ä")
    with pytest.raises(ValueError, match=r"20,000,002 bytes.* at most 20,000,000"):
        html.check_size("x" * 20_000_000 + "ä")


@pytest.mark.parametrize("name", html.SCRIPTS)
def test_a_script_says_what_it_is_for_and_writes_no_html(name):
    script = html.read(name)
    assert re.match(r'"use strict";\n\n/\* [A-Z]', script)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", script)
    assert not re.search(r"fetch\(|XMLHttpRequest|WebSocket|import\(", script)


@pytest.mark.skipif(not shutil.which("node"), reason="there is no node")
def test_the_script_is_javascript(text, tmp_path):
    path = tmp_path / "page.js"
    path.write_text(parse(text).texts["script"], encoding="utf-8")
    subprocess.run(["node", "--check", path], check=True)
