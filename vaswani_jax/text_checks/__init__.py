"""Checks of parallel text: what is wrong with it, and which settings fix it."""
