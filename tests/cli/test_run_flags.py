"""Programs name models by the same flags, which are theirs."""

from tests import interpreter

PROGRAM = """
from absl import flags
from vaswani_jax.cli import run_flags

defines = "define_workdir", "define_checkpoints", "define_ensemble"
values = [getattr(run_flags, name)() for name in defines]
flags.FLAGS(["program", "--workdir=~/run", "--ensemble=~/a,b@best"])
names = {flags.FLAGS.find_module_defining_flag(value.name) for value in values}
print(*names, *(value.value for value in values))
"""


def test_the_flags_belong_to_the_program_and_expand_its_users_home() -> None:
    printed = interpreter.output_of(PROGRAM, HOME="/home/me")
    assert printed == "-c /home/me/run averaged ['/home/me/a', 'b@best']"
