"""Section 5.1: training data and batching. NumPy only."""
