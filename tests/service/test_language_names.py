"""Languages have English names, and requests may name them in several ways."""

import pytest

from vaswani_jax.service import language_names

CODES = "ar cs da de el en es fa fi fr it ja ko nb nl no pl pt ru sv tr uk zh".split()


def test_names_are_english():
    names = [language_names.name(code) for code in CODES]
    assert (
        names
        == (
            "Arabic Czech Danish German Greek English Spanish Persian Finnish French "
            "Italian Japanese Korean Bokmal Dutch Norwegian Polish Portuguese Russian "
            "Swedish Turkish Ukrainian Chinese"
        ).split()
    )


@pytest.mark.parametrize(
    ("locale", "requested", "rank"),
    [
        ("de", "de", 3),
        ("de", "deu", 1),
        ("de_AT", "DE-at", 3),
        ("de_AT", "de_CH", 1),
        ("trees", "trees", 3),
        ("trees", "tr", 0),
        ("de", "", 0),
        ("de", "\0", 0),
        ("zh_CN", "zh-Hant", 0),
        ("zh_CN", "zh-Hans", 2),
        ("zh_TW", "zh-HK", 2),
        ("zh_TW", "zh-SG", 0),
        ("zh_Hant", "cmn-MO", 2),
        ("zh_Hant_CN", "zh-CN", 0),
        ("zh_Hant_CN", "zh-TW", 2),
        ("zh", "zh-Hant", 1),
        ("kor_Hang", "ko-Kore", 2),
        ("urd_Arab", "ur-Aran", 2),
        ("ja_Jpan", "ja-Hrkt", 2),
        ("zh_MY", "zh", 1),
        ("zh_Hani", "zh-TW", 1),
        ("sr_Latn", "sr-Cyrl", 0),
        ("sr_RS", "sr-Latn", 1),
        # Regions stand for scripts in Chinese alone.
        ("en_SG", "en-HK", 1),
    ],
)
def test_the_nearest_locale_ranks_highest(locale, requested, rank):
    assert language_names.rank(locale, requested) == rank
