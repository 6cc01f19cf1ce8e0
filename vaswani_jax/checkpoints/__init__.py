"""Checkpoints and the records of a run: saved, selected, averaged, compared."""
