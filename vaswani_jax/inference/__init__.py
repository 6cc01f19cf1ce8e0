"""Translate: search, sample, score, align (section 6.1)."""
