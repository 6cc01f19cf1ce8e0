"""Pairs of several target locales: tags, equal shares, nothing held out is trained."""

import collections
import itertools

import pytest

from tests.data.cldr import small_pairs

pytest.importorskip("babel")
LOCALES = ("de", "ja", "pt_BR")
NAMES = ("territory", "language", "dialect", "month", "weekday")
SIZES = {"num_train": 1000, "num_valid": 30, "num_test": 60}


def names_only(rng):
    """The names come first; to write all phrases in several locales takes seconds."""
    phrases = small_pairs.ALL_PHRASES(rng)
    return itertools.takewhile(lambda phrase: phrase.kind in NAMES, phrases)


def generate(target_locale, **changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small_pairs.phrases, "all_phrases", names_only)
        return small_pairs.generate("en", target_locale, **(SIZES | changes))


@pytest.fixture(scope="module")
def mixture():
    return generate(",".join(LOCALES))


def by_tag(pairs):
    groups = collections.defaultdict(list)
    for source, target in pairs:
        tag, line = source.split(" ", maxsplit=1)
        groups[tag].append((line, target))
    return groups


def test_each_target_locale_has_an_equal_share_under_its_tag(mixture):
    sizes = {
        split: {tag: len(pairs) for tag, pairs in by_tag(mixture[split]).items()}
        for split in mixture
    }
    tags = ["<2de>", "<2ja>", "<2pt_BR>"]
    assert sizes["train"] == dict(zip(tags, (334, 333, 333), strict=True))
    assert sizes["valid"] == dict.fromkeys(tags, 10)
    assert sizes["test"] == dict.fromkeys(tags, 20)


def test_what_is_trained_on_is_the_text_of_each_locale_alone(mixture):
    trained = by_tag(mixture["train"])
    for locale, size in (("de", 334), ("ja", 333)):
        alone = generate(locale, num_train=size, num_valid=0, num_test=0)
        assert set(trained[f"<2{locale}>"]) == set(alone["train"])


def test_no_held_out_source_is_trained_on_for_another_locale(mixture):
    trained = {line for pairs in by_tag(mixture["train"]).values() for line, _ in pairs}
    held_out = [*mixture["valid"], *mixture["test"]]
    lines = {line for pairs in by_tag(held_out).values() for line, _ in pairs}
    assert lines and not lines & trained


def test_the_locales_are_mixed_in_an_order_that_the_seed_decides(mixture):
    assert generate(",".join(LOCALES)) == mixture
    for pairs in mixture.values():
        half = by_tag(pairs[: len(pairs) // 2])
        assert len(half) == 3
        assert max(map(len, half.values())) < len(pairs) / 3


def test_the_locale_that_has_too_few_pairs_is_named():
    with pytest.raises(ValueError, match=r"at most .* for the target locale fr$"):
        generate("fr,de", num_train=10**15)


def test_each_locale_must_write_otherwise_than_the_source():
    with pytest.raises(ValueError, match=r"source_locale .* got 'en' and 'en_US'$"):
        generate("de,en_US")
