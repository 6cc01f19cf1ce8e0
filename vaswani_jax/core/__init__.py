"""Nouns and devices: configuration, types that flow, placement."""
