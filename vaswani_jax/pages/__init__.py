"""One HTML file of a run: its attention, its search and what its heads do."""
