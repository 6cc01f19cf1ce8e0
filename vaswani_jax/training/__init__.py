"""Sections 5.3 and 5.4: optimizer, schedule, regularisation, the loop."""
