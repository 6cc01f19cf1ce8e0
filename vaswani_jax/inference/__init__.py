"""Section 6.1: beam search and scores."""
