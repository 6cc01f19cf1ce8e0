"""Measurements of training and decoding speed."""
