"""How the command line of a program is read, and the line that says so."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Syntax:
    """How the command line of a program is read.

    Attributes:
        arguments: The flags that words without dashes set, in this order.
        takes_config: Whether the program has --config.
        default_config: The name of the configuration if none is given and --workdir
            has recorded none.
        default_workdir: Whether a missing --workdir means the run that --config names,
            or runs/NAME of the preset.
    """

    arguments: tuple[str, ...] = ()
    takes_config: bool = False
    default_config: str = ""
    default_workdir: bool = False

    def usage(self, program: str) -> str:
        """Return what may follow the name of the program.

        >>> Syntax(arguments=("config",), takes_config=True).usage("vaswani train")
        'usage: vaswani train CONFIG [--FLAG=VALUE ...] [--config.KEY=VALUE ...]'
        """
        words = [program, *map(str.upper, self.arguments), "[--FLAG=VALUE ...]"]
        words += ["[--config.KEY=VALUE ...]"] * self.takes_config
        return f"usage: {' '.join(words)}"
