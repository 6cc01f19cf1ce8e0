"""Flags, exit codes and logging of the programs."""
