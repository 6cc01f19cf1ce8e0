"""Measure the speed of training and of decoding."""
