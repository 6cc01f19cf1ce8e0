"""The page of a run that the site shows is what this code makes of its JSON."""

import json

from tests.docs import render_page

MAX_BYTES = 450_000


def test_the_page_is_rendered_from_its_json():
    text = render_page.PAGE.read_text(encoding="utf-8")
    command = "python -m tests.docs.render_page"
    assert text == render_page.render(), f"render it again: {command}"


def test_the_page_is_small_and_names_its_command():
    assert render_page.PAGE.stat().st_size <= MAX_BYTES
    values = json.loads(render_page.VALUES.read_text(encoding="utf-8"))
    assert values["command"].startswith("vaswani page runs/")
    assert values["heads"]
