"""Sentences of any text, and the subwords that begin them."""

import hypothesis
import hypothesis.strategies as st
import pytest

from tests import settings
from vaswani_jax.inference import sentences

TEXTS = {
    "en": ("Dr. Li paid $3.15 e.g. today. ", '"Really?" ', "He left! ", "So what."),
    "de": ("Am 3. Mai kam z. B. Prof. Weiß. ", "Gut."),
    "ru": ("Он ушёл. ", "Правда?"),
    "el": ("Τι κάνεις; ", "Καλά."),
    "ar": ("كيف حالك؟ ", "بخير."),
    "hi": ("यह है। ", "वह क्या है?"),
    "zh_Hans": ("你好。", "再见！", "他说：“走吧。”", "他走了。"),
    "ja": ("今日は。", "「はい。」", "明日？"),
    "am": ("ሰላም። ", "ደህና።"),
}


@pytest.mark.parametrize("locale", TEXTS)
def test_sentences_end_where_the_language_ends_them(locale: str) -> None:
    text = "".join(TEXTS[locale])
    starts = sentences.sentence_starts(text, locale)
    pieces = [text[i:j] for i, j in zip([0, *starts], [*starts, None], strict=True)]
    assert pieces == list(TEXTS[locale])


@hypothesis.given(
    st.text(alphabet=".!?。 \"'»()\u2028\x85\u3000\0aBक।😀\u200d\u0301é", max_size=30),
    st.sampled_from(["en", "zh", "hi", "tlh", "pt_BR"]),
)
def test_any_text_has_starts_within_it(text: str, locale: str) -> None:
    starts = sentences.sentence_starts(text, locale)
    assert starts == sorted(set(starts))
    assert all(0 < start < len(text) for start in starts)
    vocabulary = settings.letters_vocabulary()
    spans = vocabulary.find_spans(text)
    for index in sentences.first_subwords(starts, spans, text):
        # A part of the line in which no sentence goes on.
        begin = spans[index][0]
        assert any(not text[begin:start].strip() for start in starts if start >= begin)
