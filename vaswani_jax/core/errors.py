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


def one_line(error: BaseException) -> str:
    r"""Return an exception's message as one line, or its repr if that is empty.

    >>> one_line(ValueError("\na\n  b")), one_line(EOFError())
    ('a b', 'EOFError()')
    """
    return " ".join(str(error).split())[:MAX_CHARACTERS] or repr(error)
