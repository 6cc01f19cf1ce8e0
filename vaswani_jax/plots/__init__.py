"""Pictures of a run: its learning curves, and the attention of a sentence."""
