"""Execute standard input, as `python -` does, in a process with imported libraries."""

import sys

if __name__ == "__main__":
    program = compile(sys.stdin.read(), "<stdin>", "exec")
    exec(program, {"__name__": "__main__"})
