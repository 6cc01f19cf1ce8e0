"""Names of the special tokens in engines that look subwords up by their spelling."""

from vaswani_jax.core import types
from vaswani_jax.data.tokenizer import SPECIAL_SPELLINGS
from vaswani_jax.data.vocabulary import Vocabulary


def name_subwords(vocabulary: Vocabulary) -> tuple[list[str], list[str]]:
    """Return the names of the source's subwords, and of the target's.

    Padding and marks have one name on both sides, which no text spells by accident.
    Without bytes, SentencePiece hands on unknown characters as they are: a text's
    "</s>" may be one subword, which engines take for the end mark of that name. No
    subword has a space, so there they are " <pad>", " <s>" and " </s>". The name of
    the unknown subword fits such text.
    """
    sides = list(vocabulary.source.spellings), list(vocabulary.target.spellings)
    has_bytes = all(
        any(map(subwords.is_byte, range(subwords.size)))
        for subwords in (vocabulary.source, vocabulary.target)
    )
    for token in (types.PAD_ID, types.BOS_ID, types.EOS_ID):
        is_unique = has_bytes and sides[0][token] == sides[1][token]
        name = sides[0][token] if is_unique else f" {SPECIAL_SPELLINGS[token]}"
        for names in sides:
            names[token] = name
    return sides
