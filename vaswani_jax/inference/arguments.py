"""Check the arguments of a translator: lines, prefixes, numbers of hypotheses."""

from collections.abc import Iterable, Sequence
from typing import Any

from vaswani_jax.core.config import SearchConfig
from vaswani_jax.data.vocabulary import Vocabulary


def check_lines(lines: Iterable[str], name: str) -> list[str]:
    """Return lines as a list; refuse any that is not a string.

    An iterator can be read only once, and the rows of a table's column may not be
    numbered from 0.

    Raises:
        TypeError: It is one string, or not all are strings.
    """
    if isinstance(lines, str):
        raise TypeError(
            f"{name} must be a list of strings, got the string {lines[:40]!r}: write "
            "[text] for one line"
        )
    line_list = list(lines)
    for line in line_list:
        if not isinstance(line, str):
            raise TypeError(f"{name} must be strings, got {line!r}")
    return line_list


def check_equal_numbers(**sides: Sequence[Any]) -> None:
    """Refuse two lists, given by their names, of different lengths.

    Raises:
        ValueError: The numbers of lines differ.
    """
    (first, first_lines), (second, second_lines) = sides.items()
    if len(first_lines) != len(second_lines):
        raise ValueError(
            f"{first} and {second} must have equal numbers of lines, got "
            f"{len(first_lines):,} and {len(second_lines):,}"
        )


def read_constraints(
    lines: Sequence[str], constraints: Sequence[Iterable[str]]
) -> list[list[str]]:
    """Return the phrases of each line as lists.

    Raises:
        TypeError: The constraints are a string, or the entry of a line is no list of
            strings.
        ValueError: The numbers of lines differ.
    """
    if isinstance(constraints, str):
        raise TypeError(
            f"constraints must have a list of phrases for each line, got the string "
            f"{constraints[:40]!r}"
        )
    check_equal_numbers(lines=lines, constraints=constraints)
    phrases: list[list[str]] = []
    for number, entry in enumerate(constraints):
        name = f"constraints[{number}]"
        if not isinstance(entry, Iterable):
            raise TypeError(f"{name} must be a list of phrases, got {entry!r}")
        phrases.append(check_lines(entry, name))
    return phrases


def check_lengths(
    source_ids: Sequence[Sequence[int]],
    target_ids: Sequence[Sequence[int]],
    *,
    search: SearchConfig,
    first_line: int,
) -> None:
    """Refuse pairs that are longer than what the search reads and writes.

    Args:
        source_ids: The ids of each source, without an end mark.
        target_ids: The ids of each target, without an end mark.
        search: The settings of the search.
        first_line: The number of the first line.

    Raises:
        ValueError: A line has too many tokens, the end mark counted.
    """
    limits = {
        "source": (source_ids, "max_source_tokens", search.max_source_tokens),
        "target": (
            target_ids,
            "max_source_tokens + config.search.max_extra_tokens",
            search.max_target_tokens,
        ),
    }
    for number in range(len(source_ids)):
        for side, (ids, rule, limit) in limits.items():
            if len(ids[number]) >= limit:
                raise ValueError(
                    f"{side}, line {first_line + number}: "
                    f"{len(ids[number]) + 1:,} tokens are more than "
                    f"config.search.{rule} = {limit}; shorten the line"
                )


def check_n_best(n_best: int, search: SearchConfig, *, name: str = "n_best") -> None:
    """Refuse more hypotheses than the search keeps.

    Args:
        n_best: The requested number of hypotheses.
        search: The settings of the search.
        name: What the user calls `n_best`.

    Raises:
        ValueError: It is less than 1, or more than the beam size.
    """
    if n_best < 1:
        raise ValueError(f"{name} must be at least 1, got {n_best}")
    if n_best > search.beam_size and not search.sampling:
        raise ValueError(
            f"{name}={n_best} is more than config.search.beam_size={search.beam_size}; "
            "increase the beam size, or ask for fewer"
        )


def encode_prefixes(
    prefixes: Sequence[str],
    *,
    vocabulary: Vocabulary,
    search: SearchConfig,
    first_line: int,
) -> list[list[int]]:
    """Return the ids of what the translation of each line begins with.

    Raises:
        ValueError: A line, counted from `first_line`, has more than
            `max_source_tokens`, or the target is trees.
    """
    for number, prefix in enumerate(prefixes, start=first_line):
        if vocabulary.is_trees and prefix.strip():
            raise ValueError(
                f"prefix, line {number}: a parser takes no prefixes; leave them out"
            )
    encoded = vocabulary.encode(prefixes, target=True)
    for number, ids in enumerate(encoded, start=first_line):
        if len(ids) > search.max_source_tokens:
            raise ValueError(
                f"prefix, line {number}: {len(ids):,} tokens are more than "
                f"config.search.max_source_tokens={search.max_source_tokens}; shorten "
                "the prefix"
            )
    return encoded
