"""On one device, float32 training gives the same digits every time it is run."""

import subprocess
import sys

DIGEST = """
import hashlib
import jax
from tests import settings
from vaswani_jax.core import parallel
from vaswani_jax.training import step

small = settings.small_settings(**{"model.dropout_rate": 0.3, "model.num_layers": 2})
run = parallel.over_devices(
    step.train_step(small, vocab_size=30, parts=1), donate_state=True
)
state = parallel.replicate(step.create_state(small, vocab_size=30))
for seed in range(3):
    batch = settings.random_batch(
        rows=64, source_length=12, target_length=11, vocab_size=30, seed=seed
    )
    state, metrics = run(state, parallel.split_rows(batch, multiple=1))
digest = hashlib.sha256(str(float(metrics.sums.loss)).encode())
for leaf in jax.tree.leaves(parallel.gather(state)):
    digest.update(leaf.tobytes())
print(jax.device_count(), digest.hexdigest())
"""


def test_two_processes_make_the_same_digits():
    command = [sys.executable, "-c", DIGEST]
    environment = {"PATH": "", "JAX_PLATFORMS": "cpu"}  # one device, all optimisations
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    found = [process.communicate()[0].split() for process in running]
    assert found[0] == found[1]
    assert found[0][0] == "1"
