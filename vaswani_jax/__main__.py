"""Run `vaswani` as `python -m vaswani_jax`."""

from vaswani_jax.cli import commands

if __name__ == "__main__":
    commands.main()
