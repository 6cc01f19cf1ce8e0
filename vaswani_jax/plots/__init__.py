"""Pictures of a run: learning curves, the attention of a sentence, and its tree."""
