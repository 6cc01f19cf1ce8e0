"""Print digests of the programs that XLA compiles for CPUs, to compare two versions.

    python -m tests.benchmarks.compiled_programs --tree=BEFORE > before.json
    python -m tests.benchmarks.compiled_programs --tree=AFTER > after.json
    diff before.json after.json

A tree is a checkout of this repository. For the demo's model and the base model, on one
and on two devices, the training step and the search are compiled, not executed. Equal
digests mean the same optimised instructions: names of functions and lines of source
code do not count.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

PRESETS = {"demo": 1_000, "base_ende": 37_000}
ROWS, LENGTH = 16, 24
# Where an instruction comes from, in the program's head and beside the instruction.
TABLES = re.compile(
    r"^(FileNames|FunctionNames|FileLocations|StackFrames)\n.+?\n\n", re.M | re.S
)
METADATA = re.compile(r", metadata=\{[^{}]*\}")


def instructions(text: str) -> str:
    """Return the text of a compiled program without what names its source.

    >>> instructions('%a = f32[] add(%b, %c), metadata={op_name="x" source_line=3}')
    '%a = f32[] add(%b, %c)'
    """
    return METADATA.sub("", TABLES.sub("", text))


def compiled_programs() -> dict[str, str]:
    """Return the digests of this tree's programs on the devices that are here."""
    import jax
    import jax.numpy as jnp

    from vaswani_jax.core import parallel, parsing, presets, types
    from vaswani_jax.inference import generate
    from vaswani_jax.training import step

    def ids(length: int) -> Any:
        shape = (jax.device_count(), ROWS, length)
        return jax.ShapeDtypeStruct(shape, jnp.int32)

    digests = {}
    for preset, vocab_size in PRESETS.items():
        file, variant = presets.find(preset)
        settings = parsing.parse(presets.load(file, variant))
        state = jax.eval_shape(
            lambda settings=settings, V=vocab_size: step.create_state(
                settings, vocab_size=V
            )
        )
        batch = types.Batch(ids(LENGTH), ids(LENGTH), ids(LENGTH), None)
        train_step = step.train_step(
            settings, vocab_size=vocab_size, num_microbatches=1
        )
        generator = generate.make_generator(
            settings, (settings.model,), vocab_size=vocab_size, n_best=1
        )
        rows = generate.Rows(ids(LENGTH), ids(0), ids(2))
        programs = {
            "step": (
                parallel.over_devices(train_step, donate_state=True),
                state,
                batch,
            ),
            "search": (parallel.over_rows(generator), (state.params,), rows),
        }
        for name, (program, *arguments) in programs.items():
            text = instructions(program.lower(*arguments).compile().as_text())
            digest = hashlib.sha256(text.encode()).hexdigest()
            digests[f"{preset} {name}"] = f"{digest}, {len(text.splitlines())} lines"
            print(f"{preset} {name}: {digest}", file=sys.stderr, flush=True)
    return digests


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=pathlib.Path, required=True)
    tree = parser.parse_args().tree.resolve()
    digests = {}
    for num_devices in (1, 2):
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={num_devices}",
        }
        code = pathlib.Path(__file__).read_text(encoding="utf-8")
        code = code.replace('if __name__ == "__main__":\n    main()\n', "")
        code += "\nprint(json.dumps(compiled_programs()))\n"
        completed = subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            cwd=tree,
            env=environment,
            stdout=subprocess.PIPE,
        )
        digests[f"devices_{num_devices}"] = json.loads(completed.stdout)
    print(json.dumps(digests, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
