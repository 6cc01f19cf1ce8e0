"""Trees that parsers agree on, and their lengths."""

import collections

import pytest

from vaswani_jax.data import agreement, treebank


def parse(*lines):
    return list(treebank.parse(lines, name="test"))


def test_trees_that_differ_in_a_bracket_or_a_tag_go():
    first = parse("(S (NN a))", "(S (NP (NN a)) (NN b))", "(S (VB b))", "(S (NN a))")
    second = parse("(S (NN a))", "(S (NN a) (NN b))", "(S (NN b))", "(S (NN a))")
    agreed = parse("(S (NN a))", "(S (NN a))")
    assert list(agreement.keep_agreed(zip(first, second, strict=True))) == agreed
    three = zip(first, first, second, strict=True)
    assert list(agreement.keep_agreed(three)) == agreed


def test_trees_are_read_one_sentence_at_a_time():
    [tree] = parse("(S (NN a))")
    sentences = iter([(tree, tree)] * 9)
    assert next(agreement.keep_agreed(sentences)) == tree
    assert len(list(sentences)) == 8


def test_other_words_are_refused_with_the_number_of_the_tree():
    same = parse("(S (NN a))")
    with pytest.raises(ValueError, match=r"tree 2: different words.*'b' and 'c'"):
        list(
            agreement.keep_agreed(
                zip(same + parse("(S (NN b))"), same + parse("(S (NN c))"), strict=True)
            )
        )


def test_resampled_trees_have_the_lengths_of_others():
    lengths = [length for length in (3, 12, 25) for _ in range(60)]
    like = [3] * 10 + [12] * 30 + [25] * 60
    chosen = agreement.resample(lengths, like)
    counts = collections.Counter(lengths[index] for index in chosen)
    assert counts == {3: 10, 12: 30, 25: 60}
    assert len(set(chosen)) == 100
    # In their order, spread over all that there are.
    assert chosen == sorted(chosen)
    assert chosen[0] == 0 and chosen[9] == 54


def test_a_number_of_trees_takes_all_of_a_class_that_has_too_few():
    lengths = [3] * 60 + [12] * 60 + [25] * 6
    like = [3] * 10 + [12] * 30 + [25] * 60
    chosen = agreement.resample(lengths, like, num_trees=100)
    counts = collections.Counter(lengths[index] for index in chosen)
    assert counts == {3: 10, 12: 30, 25: 6}
    assert len(agreement.resample(lengths, like)) == 1 + 3 + 6


@pytest.mark.parametrize("num_trees", [1, 3, 10, 11, 18])
def test_num_trees_is_exact_however_the_shares_are_rounded(num_trees):
    like = [3, 8, 12, 18, 25, 40]
    assert len({treebank.length_class(length) for length in like}) == 6
    lengths = [length for length in like for _ in range(3)]
    chosen = agreement.resample(lengths, like, num_trees=num_trees)
    assert len(set(chosen)) == len(chosen) == num_trees
    counts = collections.Counter(lengths[index] for index in chosen)
    assert max(counts.values()) - min(counts[length] for length in like) <= 1


def test_a_class_without_any_tree_is_named():
    with pytest.raises(ValueError, match=r"1 of 2 trees .* have 31\+ words, but no"):
        agreement.resample([12], [12, 31])
    assert agreement.resample([12], [12, 31], num_trees=2) == [0]


def test_a_rare_class_does_not_decide_how_many_there_are():
    like = [3] * 999 + [40]
    assert len(agreement.resample([3] * 50, like)) == 50
    with pytest.raises(ValueError, match="got 0 to choose from and 1,000 to resemble"):
        agreement.resample([], like)
