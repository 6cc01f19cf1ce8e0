"""Keep the texts of requests out of the log."""

import logging

from vaswani_jax.inference import line_warnings


def hide() -> None:
    """Log no warnings of odd texts: they name characters that a vocabulary lacks."""
    logging.getLogger(line_warnings.__name__).setLevel(logging.ERROR)
