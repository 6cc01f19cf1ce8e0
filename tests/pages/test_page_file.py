"""What a page's file has, and what it may not have."""

import json

import pytest

from tests.pages import samples
from vaswani_jax.pages import contents, html, page_file


def test_the_ending_decides_the_form(tmp_path):
    page = samples.page()
    written = page_file.write_page(page, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == contents.to_json(page)
    assert written.path == tmp_path / "a.json"
    page_file.write_page(page, str(tmp_path / "a.HTML"))
    assert (tmp_path / "a.HTML").read_text() == html.render(page)
    with pytest.raises(ValueError, match=r"^path=a\.pdf must end in \.html or \.json$"):
        page_file.write_page(page, "a.pdf")


def test_the_size_and_the_share_of_weights_are_told(tmp_path):
    page = samples.page(num_models=2, num_sentences=2)
    written = page_file.write_page(page, tmp_path / "a.json")
    text = (tmp_path / "a.json").read_bytes()
    assert written.num_bytes == len(text)
    values = json.loads(text)
    attentions = [
        view["attention"] for each in values["sentences"] for view in each["views"]
    ]
    assert written.num_weight_bytes == sum(
        len(each[kind]) for each in attentions for kind in contents.KINDS
    )
    kilobytes = round(len(text) / 1000)
    assert str(written).startswith(f"{tmp_path / 'a.json'}, {kilobytes} kB, of which ")


def test_a_page_that_is_too_large_leaves_the_old_file(tmp_path, monkeypatch):
    monkeypatch.setattr(html, "MAX_BYTES", 40_000)
    (tmp_path / "a.json").write_text("old")
    sentence = (
        r"^the page has \d\d,\d{3} bytes; a page has at most 40,000: give fewer or .*; "
        r"the attention weights of 2 translations have \d\d,\d{3}$"
    )
    with pytest.raises(ValueError, match=sentence):
        page_file.render(samples.page(num_sentences=2), tmp_path / "a.json")
    with pytest.raises(ValueError, match=sentence):
        page_file.write_page(samples.page(num_sentences=2), tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
