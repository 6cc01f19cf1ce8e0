"""A client of a server whose model shouts."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from tests.service import shouting


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    """A client of one model, from English to German."""
    with shouting.client_of() as client:
        yield client
