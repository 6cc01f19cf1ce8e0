"""Find out what a trained model does: the roles of its attention heads."""
