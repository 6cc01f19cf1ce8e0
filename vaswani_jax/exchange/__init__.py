"""Section 3's model for other programs."""
