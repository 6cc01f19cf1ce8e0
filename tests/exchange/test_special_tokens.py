"""Special tokens that a text spells stay text in other engines."""

import pathlib

import numpy as np
import pytest
import sentencepiece

from tests import settings, ugly_text
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import types
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.exchange import formats, special_tokens
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator

SPELT = [
    *("ba </s> ko", "</s>", "<pad> ba", "ba<s>ko", "<unk>", "ba <blank> ko <0x41>"),
    *("ko\t\u3000ba", "ba  <2xx> ko", "ko >>fra<<"),
]
# Other engines take NUL for a character, and white space alone for text.
UGLY = [line for line in ugly_text.LINES if line.strip() and "\0" not in line]


def make_translator(lines: list[str], *, vocab_size: int) -> Translator:
    small = settings.small_settings(
        **{
            "model.d_v": 4,
            "data.byte_fallback": vocab_size > 256,
            "data.vocab_size": vocab_size,
        }
    )
    vocabulary = settings.learn_vocabulary(lines, small.data)
    params = settings.random_params(small.model, vocab_size=vocabulary.size, seed=1)
    member = Member(small.model, Checkpoint(0, {"params": params}, {}))
    return Translator(small, vocabulary, members=[member])


@pytest.fixture(params=[272, 16], ids=["with bytes", "without bytes"])
def translator(request: pytest.FixtureRequest) -> Translator:
    """One whose vocabulary has no letter of "</s>"."""
    return make_translator(["bab ko kob ba"] * 30, vocab_size=request.param)


def test_marian_reads_special_tokens_in_a_text_as_text(
    translator: Translator, tmp_path: pathlib.Path
) -> None:
    transformers = pytest.importorskip(
        "transformers", reason="transformers is not installed: .[export]"
    )
    formats.save(tmp_path, translator, form="marian")
    tokenizer = transformers.MarianTokenizer.from_pretrained(str(tmp_path))
    lines = [*SPELT, *UGLY]
    expected = [[*ids, types.EOS_ID] for ids in translator.vocabulary.encode(lines)]
    assert tokenizer(lines)["input_ids"] == expected
    [ids] = translator.vocabulary.encode(["bab ko"], target=True)
    marked = [types.BOS_ID, *ids, types.EOS_ID, types.PAD_ID]
    assert tokenizer.decode(marked, skip_special_tokens=True) == "bab ko"
    padded = tokenizer(["ba", "ba ko"], padding=True)["input_ids"]
    assert padded[0][1:] == [types.EOS_ID, types.PAD_ID]


def test_ctranslate2_reads_special_tokens_in_a_text_as_text(
    translator: Translator, tmp_path: pathlib.Path
) -> None:
    ctranslate2 = pytest.importorskip(
        "ctranslate2", reason="ctranslate2 is not installed: .[export]"
    )
    formats.save(tmp_path, translator, form="ctranslate2")
    engine = ctranslate2.Translator(str(tmp_path), intra_threads=1)
    subwords = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / "source.spm")
    )
    names = subwords.encode(SPELT, out_type=str)
    scored = engine.score_batch(names, [["\u2581ba"]] * len(SPELT))
    # Each line as ids, by the name of each id in the engine.
    spellings = special_tokens.name_subwords(translator.vocabulary)[0]
    ugly = subwords.encode(UGLY, out_type=str)
    assert [
        [spellings.index(name) if name in spellings else types.UNK_ID for name in line]
        for line in ugly
    ] == translator.vocabulary.encode(UGLY)
    by_ids = [
        [spellings[token] for token in ids]
        for ids in translator.vocabulary.encode(SPELT)
    ]
    assert all(name not in spellings[:3] for line in names for name in line)
    expected = engine.score_batch(by_ids, [["\u2581ba"]] * len(SPELT))
    np.testing.assert_array_equal(
        [line.log_probs for line in scored], [line.log_probs for line in expected]
    )


def test_marks_have_one_name_in_both_vocabularies() -> None:
    first, second = (
        make_translator(["bab ko kob ba"] * 30, vocab_size=size).vocabulary.source
        for size in (272, 16)
    )
    vocabulary = Vocabulary(first, second, is_shared=False)
    source, target = special_tokens.name_subwords(vocabulary)
    assert source[:4] == target[:4] == [" <pad>", " <s>", " </s>", "<unk>"]
    assert source[4:] == first.spellings[4:] and target[4:] == second.spellings[4:]
    plain = special_tokens.name_subwords(Vocabulary.shared(first))
    assert plain == (first.spellings, first.spellings)
