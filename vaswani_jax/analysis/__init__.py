"""Sections 4 to 6: what the tables and figures are made of, and what a run costs."""
