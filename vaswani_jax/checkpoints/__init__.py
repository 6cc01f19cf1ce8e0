"""What a run leaves: saved states, their selection, averages and records."""
