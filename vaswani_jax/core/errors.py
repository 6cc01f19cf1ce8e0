"""Shorten exceptions of other libraries to one line."""

MAX_CHARACTERS = 300


class NoRunError(ValueError):
    """A directory holds no run."""


def first_line(error: BaseException) -> str:
    r"""Return the first line of an exception's message, or its repr if that is empty.

    >>> first_line(ValueError("\na\nb")), first_line(EOFError())
    ('a', 'EOFError()')
    """
    lines = (line.strip() for line in str(error).splitlines())
    return next(filter(None, lines), repr(error))[:MAX_CHARACTERS]
