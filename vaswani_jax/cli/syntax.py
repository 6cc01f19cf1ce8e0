"""The syntax of a program's command line."""

import dataclasses

# Flags of programs that several processes can run together.
PROCESS_FLAGS = ("coordinator", "num_processes", "process_id")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Syntax:
    """The words and flags that a program's command line may have.

    Attributes:
        arguments: The flags that words without dashes set, in this order.
        repeats: Whether the last of these takes all words that follow.
        takes_config: Whether the program has --config.
        default_config: The configuration to use if the command line names none and
            --workdir holds no run; the program completes it.
        default_workdir: Whether --workdir may be missing. It is then the run that
            --config names, or runs/NAME of the preset.
        multi_process: Whether several processes can run the program together.
    """

    arguments: tuple[str, ...] = ()
    repeats: bool = False
    takes_config: bool = False
    default_config: str = ""
    default_workdir: bool = False
    multi_process: bool = False

    def usage(self, program: str) -> str:
        """Return what may follow the name of the program.

        >>> Syntax(arguments=("config",), takes_config=True).usage("vaswani train")
        'usage: vaswani train CONFIG [--FLAG=VALUE ...] [--config.KEY=VALUE ...]'
        """
        words = [program, *map(str.upper, self.arguments)]
        words += ["..."] * self.repeats + ["[--FLAG=VALUE ...]"]
        words += ["[--config.KEY=VALUE ...]"] * self.takes_config
        return f"usage: {' '.join(words)}"

    def takes(self, flag: str) -> bool:
        """Return False for a flag that is defined for other programs alone."""
        if flag == "print_config":
            return self.takes_config
        return self.multi_process or flag not in PROCESS_FLAGS
