"""Execute standard input, as `python -` does, where the libraries are imported."""

import sys

if __name__ == "__main__":
    program = compile(sys.stdin.read(), "<stdin>", "exec")
    exec(program, {"__name__": "__main__"})
