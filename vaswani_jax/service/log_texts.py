"""Keep the texts of requests out of the log."""

import logging

from vaswani_jax.inference import line_translator


def hide() -> None:
    """Log no warnings of odd texts: they name characters that a vocabulary lacks."""
    logging.getLogger(line_translator.__name__).setLevel(logging.ERROR)
