"""What a page says of searches whose course is known."""

import pytest

from tests import settings
from tests.inference import prefixes
from tests.inference.test_beam_search import markov_logits
from tests.inference.test_search_record import records_of
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import contents, search_tree


@pytest.fixture(scope="module")
def chain() -> contents.Search:
    """A chain whose winner is token 4 and the end mark; 3 and 4 are letters."""
    [record] = records_of(markov_logits(), [prefixes.LONGEST], W=2, alpha=0.0)
    return search_tree.to_search(record, settings.letters_vocabulary())


def test_candidates_are_spelt_and_have_a_fate(chain: contents.Search) -> None:
    spell = settings.letters_vocabulary().target.subword
    first, second = chain.positions
    assert [(c.token, c.fate, c.live) for c in first] == [
        (spell(3), "live", 0),
        (spell(4), "live", 1),
    ]
    assert [(c.token, c.parent, c.fate) for c in second] == [
        ("</s>", 1, "finished"),
        (spell(3), 0, "live"),
        (spell(4), 0, "live"),
        ("</s>", 0, "dropped"),
    ]
    assert (chain.beam_size, chain.alpha, chain.penalty_form) == (2, 0.0, "paper")


def test_the_winner_leads_through_its_candidates(chain: contents.Search) -> None:
    [winner] = chain.finished
    path = [
        position[place]
        for position, place in zip(chain.positions, winner.candidates, strict=True)
    ]
    assert winner.tokens == tuple(candidate.token for candidate in path)
    assert path[-1].log_prob == winner.log_prob == winner.score * winner.penalty
    assert path[-1].fate == "finished"


def test_the_reason_has_the_numbers_of_the_bound(chain: contents.Search) -> None:
    # ln 0.36 and ln 0.21.
    assert "best finished one, with the score -1.0217" in chain.stopped
    assert "has log P = -1.5606" in chain.stopped
    assert "penalty, 1.0000 for 4 tokens, that is -1.5606" in chain.stopped


def test_other_reasons_are_the_longest_length_and_nothing_left() -> None:
    vocabulary = settings.letters_vocabulary()
    [cut] = records_of(markov_logits(), [1], W=2, alpha=0.0)
    assert search_tree.to_search(cut, vocabulary).stopped == (
        "the longest length was reached: 1 tokens"
    )
    # After 5 comes only the end mark.
    logits = markov_logits()
    logits[0, 0] = logits[0, prefixes.number((5,))]
    [over] = records_of(logits, [4], W=2, alpha=0.0)
    assert search_tree.to_search(over, vocabulary).stopped == (
        "no hypothesis is live: each extension ended, or is forbidden"
    )


def test_a_translator_that_samples_has_no_search() -> None:
    vocabulary: Vocabulary = settings.letters_vocabulary()
    small = settings.small_settings(**{"search.sampling": True})
    members = [Member(small.model, Checkpoint(0, {"params": {}}, {}))]
    translator = Translator(small, vocabulary, members=members)
    assert search_tree.search_trees(translator, ["a", "b"]) == [None, None]
