"""Write numbers with their nouns, for messages."""


def format_count(number: int, singular: str, *, plural: str = "") -> str:
    """Return a number followed by its noun, or by a noun and a verb.

    Args:
        number: The number of things.
        singular: The words after 1.
        plural: The words after any other number; `singular` and an "s" by default.

    >>> format_count(1, "line"), format_count(1200, "line")
    ('1 line', '1,200 lines')
    >>> [format_count(n, "batch is", plural="batches are") for n in (1, 2)]
    ['1 batch is', '2 batches are']
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"
