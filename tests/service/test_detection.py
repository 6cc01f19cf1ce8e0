"""A text is in the language whose model would have written it."""

import asyncio
import time

import pytest

from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.service.detection import detect


class Knowing(ShoutingEngine):
    """Gives texts with a word of its target language a high probability."""

    def __init__(self, word, **options):
        super().__init__(**options)
        self.word = word

    async def score(self, sources, targets, *, deadline=None):
        [score] = await super().score(sources, ["A"], deadline=deadline)
        log_prob = -1.0 if self.word in targets[0] else -60.0
        return [type(score)(log_prob, score.tokens, score.log_probs)]


def models(*names):
    """Models from a language to another, of which they know a word."""
    names = names or (("en", "de", "der"), ("de", "en", "the"), ("fr", "de", "der"))
    return shouting.models_of(
        *(
            Knowing(
                word,
                name=f"{source}-{target}",
                **{"data.source_locale": source, "data.target_locale": target},
            )
            for source, target, word in names
        )
    )


@pytest.mark.parametrize(("text", "language"), [("the dog", "en"), ("der Hund", "de")])
def test_the_language_of_the_decoder_that_knows_the_text(text, language):
    deadline = time.monotonic() + 10
    detections = asyncio.run(detect(text, models(), deadline=deadline))
    assert detections[0].language == language
    assert {each.language for each in detections} == {"en", "de", "fr"}
    assert sum(each.confidence for each in detections) == pytest.approx(100, abs=0.2)
    confidences = [each.confidence for each in detections]
    assert confidences == sorted(confidences, reverse=True)


@pytest.mark.parametrize(
    ("text", "language"), [("the colour", "en-GB"), ("the color", "en-US")]
)
def test_a_variant_is_judged_by_the_model_into_it(text, language):
    variants = models(
        *(("de", "en_GB", "colour"), ("de", "en_US", "color")),
        *(("en_GB", "de", "der"), ("en_US", "de", "der")),
    )
    deadline = time.monotonic() + 10
    detections = asyncio.run(detect(text, variants, deadline=deadline))
    assert detections[0].language == language
    assert detections[0].confidence > 99


def test_chinese_is_judged_by_the_model_into_its_script():
    variants = models(
        *(("de", "zh_CN", "simple"), ("de", "zh_Hant", "complex")),
        *(("zh_SG", "de", "der"), ("zh_TW", "de", "der")),
    )
    deadline = time.monotonic() + 10
    detections = asyncio.run(detect("complex", variants, deadline=deadline))
    assert detections[0].language == "zh-TW"
    assert detections[0].confidence > 99


def test_a_model_into_another_script_judges_where_there_is_none_into_the_same():
    pair = models(("en", "zh_CN", "simple"), ("zh_TW", "en", "the"))
    deadline = time.monotonic() + 10
    detections = asyncio.run(detect("the dog", pair, deadline=deadline))
    assert detections[0].language == "en"


def test_all_sentences_of_a_text_are_judged():
    deadline = time.monotonic() + 10
    detections = asyncio.run(detect("OK. der Hund.", models(), deadline=deadline))
    assert detections[0].language == "de"


def test_a_text_of_too_many_subwords_is_judged_by_its_beginning():
    limits = {"search.max_source_tokens": 12, "search.max_extra_tokens": 1}
    scored = []

    class Judge(Knowing):
        async def score(self, sources, targets, *, deadline=None):
            ids = self.translator.vocabulary.encode(targets, target=True)
            scored.append((targets, max(map(len, ids))))
            return await super().score(sources, targets, deadline=deadline)

    models_of_few = shouting.models_of(
        *(
            Judge(
                word,
                name=target,
                **{"data.source_locale": source, "data.target_locale": target},
                **limits,
            )
            for source, target, word in (("en", "de", "der"), ("de", "en", "the"))
        )
    )
    text = "the dog " + "a b c d e f g h " * 3
    deadline = time.monotonic() + 10
    detections = asyncio.run(detect(text, models_of_few, deadline=deadline))
    assert detections[0].language == "en"
    # The same text for all, so that their scores compare.
    assert len(scored) == 2 and scored[0][0] == scored[1][0]
    assert all(0 < length < 12 for _, length in scored)


def test_a_text_without_words_may_be_in_any_language():
    detections = asyncio.run(detect(" ", models(), deadline=time.monotonic() + 10))
    assert {each.confidence for each in detections} == {33.3}


def test_one_language_that_a_model_translates_to_is_compared_with_nothing():
    pair = models(("en", "de", "der"), ("de", "fr", "le"))
    with pytest.raises(
        ValueError,
        match="no model can distinguish en, de, since models translate to de alone",
    ):
        asyncio.run(detect("der Hund", pair, deadline=time.monotonic() + 10))


def test_languages_that_no_model_translates_to_cannot_be_told_apart():
    sources = shouting.models_of(
        *(
            ShoutingEngine(
                name=source,
                **{"data.source_locale": source, "data.target_locale": "de"},
            )
            for source in ("en", "fr")
        )
    )
    with pytest.raises(
        ValueError,
        match="no model can distinguish en, fr, since models translate to none of them",
    ):
        asyncio.run(detect("a", sources, deadline=time.monotonic() + 10))
