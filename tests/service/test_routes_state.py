"""The page's files are served as they are, and no other file is."""

import importlib.resources
import re

import pytest

FOLDER = importlib.resources.files("vaswani_jax.service") / "web"
NAMES = sorted(file.name for file in FOLDER.iterdir() if "." in file.name)


@pytest.mark.parametrize("name", NAMES)
def test_each_file_of_the_page_is_served_with_its_type(client, name):
    answer = client.get("/" if name == "index.html" else f"/{name}")
    assert answer.content == (FOLDER / name).read_bytes()
    kind = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
    expected = kind.get(name.rpartition(".")[2], "image/svg+xml")
    assert answer.headers["content-type"].startswith(expected)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy and "connect-src 'self';" in policy
    condition = {"If-None-Match": answer.headers["etag"]}
    url = answer.request.url
    assert client.get(url, headers=condition).status_code == 304


def test_the_page_asks_for_what_is_served(client):
    for address in re.findall(r'(?:src|href)="([^"#]+)"', client.get("/").text):
        assert not address.startswith(("/", "http")), address
        assert client.get(f"/{address}").status_code == 200, address


def test_no_path_leads_out_of_the_folder(client):
    for path in ("/__init__.py", "/web/app.css", "/..%2fapp.py", "/index.html%00"):
        assert client.get(path).status_code == 404
