"""Text that a reader sees as the same gets the same subwords."""

import string
import unicodedata

import hypothesis
import pytest
import sentencepiece
from hypothesis import strategies

from tests import settings
from tests.data import small_vocabularies
from vaswani_jax.data import readings
from vaswani_jax.data.marian_subwords import MarianSubwords
from vaswani_jax.data.subwords import Subwords, parse_model
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.data.vocabulary_training import learn_subwords

LINES = ["Wed, Aug 19 1:20 AM", "Café über -5 'fin' \"ja\" ガス 한국", "कष ...°C"]


def learn(lines=LINES, *, size=340, symbols=()):
    data = settings.small_settings(
        **{
            "data.byte_fallback": size > 256,
            "data.vocab_size": size,
            "data.user_symbols": ",".join(symbols),
        }
    ).data
    return Vocabulary.shared(learn_subwords(lines * 20, data))


@pytest.fixture(scope="module")
def vocabulary():
    return learn()


@pytest.fixture(scope="module")
def normalized_vocabulary():
    """A vocabulary that reads capitals as small letters, and ½ as three characters."""
    small = learn([line.lower() for line in LINES], size=330).source.model
    rules = [(capital, capital.lower()) for capital in string.ascii_uppercase]
    normalizer = sentencepiece.SentencePieceNormalizer(
        norm_map=[*rules, ("½", "1\u20442"), ("\u200b", " ")]
    )
    proto = parse_model(small)
    spec = proto.normalizer_spec
    compiled = type(spec).FromString(normalizer.serialized_normalizer_spec())
    spec.precompiled_charsmap = compiled.precompiled_charsmap
    return Vocabulary.shared(Subwords(proto.SerializeToString()))


SAME = {
    "tabs": "Wed,\tAug 19\t\t1:20 AM",
    "no-break spaces": "Wed,\u00a0Aug 19 1:20\u202fAM",
    "ideographic space": "Wed,\u3000Aug 19 1:20 AM",
    "VT, FF, NEL, FS": "Wed,\x0bAug\x0c19\x851:20\x1cAM",
    "line separators": "Wed, Aug\u202819\u20291:20 AM",
    "byte-order mark": "\ufeffWed, Aug 19 1:20 AM",
    "directions": "\u200f\u202aWed,\u2066 Aug 19 1:20 AM\u200e\u202c",
    "zero width": "W\u200bed,\u2060 A\u00adug 19 1:20 AM\ufe0f",
    "controls": "Wed, \x07Aug\x7f 19 1:20 AM\0",
    "joiners": "W\u200ced\u200d, Aug 19 1:20 AM\u200d",
    "full width": "Ｗｅｄ，　Ａｕｇ　１９　１：２０　ＡＭ",
    "mathematical": "𝐖𝐞𝐝, 𝐀𝐮𝐠 19 1:20 AM",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_a_reader_sees_as_the_same_is_the_same(vocabulary, text):
    assert vocabulary.encode([text]) == vocabulary.encode([LINES[0]])
    assert vocabulary.unknown_characters(text) == []
    # The target is kept as it is.
    [ids] = vocabulary.encode([text], target=True)
    assert vocabulary.decode(ids).split() == text.replace("\0", " ").split()


def test_equivalent_and_typographic_text_is_the_same(vocabulary):
    text = unicodedata.normalize("NFD", LINES[1])
    text = text.replace("-", "\u2212").replace(' "', " \u201e").replace('"', "\u201c")
    text = text.replace(" '", " \u2018").replace("'", "\u2019").replace("fi", "\ufb01")
    expected = vocabulary.encode([LINES[1]])
    assert vocabulary.encode([text]) == expected
    half_width = LINES[1].replace("ガス", "ｶﾞｽ")
    assert vocabulary.encode([half_width]) == expected
    assert vocabulary.encode(["कष \u2026\u2103"]) == vocabulary.encode([LINES[2]])


def test_what_training_has_stays_as_it_is():
    lines = ["10\u00a0km e\u0301 \u200fa\u200cb", "e 10 km"]
    vocabulary = learn(lines * 5, size=280)
    assert vocabulary.encode(lines) == vocabulary.encode(lines, target=True)
    # The composed letter is read as what the vocabulary has.
    assert vocabulary.encode(["é"]) == vocabulary.encode(["e\u0301"])


@pytest.mark.parametrize(
    "text", ["10²", "3½", "①", "क\u200dष", "\U0001f469\u200d\U0001f52c"]
)
def test_what_means_something_else_stays_unknown(vocabulary, text):
    assert vocabulary.encode([text]) == vocabulary.encode([text], target=True)
    known = [text.replace(c, "") for c in vocabulary.unknown_characters(text)]
    assert known and text not in known


@pytest.mark.parametrize("size", [340, 74])  # with bytes, and without
def test_unknown_characters_are_those_that_no_subword_has(size):
    vocabulary = learn(size=size, symbols=["<2de>"])
    line = "<2de> Wed \U0001f600 ＜ 漢\u00a0é漢"
    assert vocabulary.unknown_characters(line) == ["\U0001f600", "＜", "漢"]
    assert vocabulary.unknown_characters("Wed <2de>") == []
    assert vocabulary.unknown_characters("Wed <") == ["<"]


def test_readings_follow_normalisation(normalized_vocabulary):
    vocabulary = normalized_vocabulary
    expected = vocabulary.encode([LINES[0]])
    for text in [*SAME.values(), "WE\u2069D,\tAUG\u200b19 1:20 am"]:
        if text != SAME["zero width"]:
            assert vocabulary.encode([text]) == expected
    # The model's own rule comes first: a zero-width space is a space.
    assert vocabulary.encode(["a\u200bm"]) == vocabulary.encode(["a m"])
    assert vocabulary.encode(["\u2019FIN\u201b"]) == vocabulary.encode(["'fin'"])
    assert vocabulary.unknown_characters("WED ½ ☃") == ["\u2044", "☃"]


snippets = strategies.sampled_from(
    [
        *" \t\u00a0\u200b\ufeff\u200c\u0301aeéAＡ漢😀½ﬁ\0",
        "Wed",
        "ガ",
        "ｶﾞ",
        "\u1100\u1161",
    ]
)


@hypothesis.given(strategies.lists(snippets, max_size=8).map("".join))
def test_each_subword_has_a_place_in_the_text(vocabulary, normalized_vocabulary, text):
    for each in (vocabulary, normalized_vocabulary):
        [ids] = each.encode([text])
        spans = each.find_spans(text)
        assert len(spans) == len(ids)
        assert spans == sorted(spans)
        assert all(0 <= begin <= end <= len(text) for begin, end in spans)


def test_places_are_those_of_the_text_that_is_given(vocabulary):
    text = "\ufeff１９\u3000\u200f1\t\tＡＭ"
    [ids] = vocabulary.encode([text])
    spelt = [
        (vocabulary.source.subword(token), text[begin:end].strip(" \u3000\t"))
        for token, (begin, end) in zip(ids, vocabulary.find_spans(text), strict=True)
    ]
    for subword, original in spelt:
        shown = original.strip("\ufeff\u200f")
        assert unicodedata.normalize("NFKC", shown) == subword.strip("\u2581")


def test_a_code_may_follow_a_byte_order_mark_and_has_a_place():
    names = ["<pad>", "<s>", "</s>", "<unk>", ">>fra<<"]
    model = small_vocabularies.trained("bpe", False).source
    subwords = MarianSubwords(model.model, [*names, *model.spellings[4:]])
    plain = subwords.encode([">>fra<< ba ko"], replace_unknown=True)
    assert subwords.encode(["\ufeff>>fra<<\u00a0ba\tko"], replace_unknown=True) == plain
    assert subwords.find_spans("\ufeff>>fra<< ba ko")[0] == (0, 8)
    assert subwords.find_spans("\ufeff>>fra<< ba ko")[1][1] == len("\ufeff>>fra<< ba")
    assert subwords.unknown_characters(">>fra<< ba > ", replace_unknown=True) == [">"]


def test_the_reading_model_serves_other_programs(vocabulary, normalized_vocabulary):
    for each in (vocabulary, normalized_vocabulary):
        other = Subwords(each.source.reading_model)
        lines = [*LINES, *SAME.values(), "10² \U0001f600"]
        cleaned = [line.replace("\0", " ") for line in lines]
        assert other.encode(cleaned) == each.encode(lines)
        assert other.spellings == each.source.spellings


def test_a_few_hundred_readings_are_found_for_a_small_alphabet():
    known = frozenset("abcdefghijklmnopqrstuvwxyzé ")
    found = readings.find_readings(known.__contains__)
    assert len(found) < 1500
    assert all(known.issuperset(text) for text in found.values())
    assert not any(known.issuperset(text) for text in found)


def test_equivalent_characters_are_read_as_their_nfc_form() -> None:
    known = frozenset("α\u03ac\u1f71 ")  # Two of them are canonically equal.
    assert readings.find_readings(known.__contains__)["α\u0301"] == "\u03ac"
    characters = readings._readable_characters()
    assert list(characters) == sorted(characters)  # In every process.
