import pytest

from tests.data.cldr import small_pairs


@pytest.fixture(scope="session")
def german():
    """English and German, from all phrases; do not change it."""
    return small_pairs.generate(num_train=30_000, num_valid=500, num_test=1000)


@pytest.fixture
def few_phrases(monkeypatch):
    monkeypatch.setattr(
        small_pairs.phrases, "all_phrases", small_pairs.every_seventh_phrase
    )


@pytest.fixture
def months_only(monkeypatch):
    monkeypatch.setattr(small_pairs.phrases, "all_phrases", small_pairs.months_only)
