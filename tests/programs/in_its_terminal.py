"""Run a module as a shell does: in a session whose terminal is its standard input.

python -m tests.programs.in_its_terminal MODULE [ARGUMENT ...]
"""

import fcntl
import os
import runpy
import sys
import termios

if __name__ == "__main__":
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
