"""Scores on held-out text: validation during training, and of a checkpoint."""
