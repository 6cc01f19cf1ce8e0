"""On one device, float32 training gives the same digits every time it is run.

These programs compile as users' do; all other tests leave optimisations out.
"""

import subprocess
import sys

DIGEST = """
import hashlib
import jax
import numpy as np
from tests import reference, settings
from vaswani_jax.core import parallel
from vaswani_jax.training import step

V = 300
tiny = settings.small_settings(**{
    "model.num_layers": 1, "model.d_model": 128, "model.d_ff": 256,
    "model.num_heads": 4, "model.d_k": 32, "model.d_v": 32,
    "model.dropout_rate": RATE,
})
run = parallel.over_devices(
    step.train_step(tiny, vocab_size=V, num_microbatches=1), donate_state=True
)
state = parallel.replicate(step.create_state(tiny, vocab_size=V))
first = parallel.gather(state).params
for seed in range(3):
    batch = settings.random_batch(
        rows=64, source_length=12, target_length=11, vocab_size=V, seed=seed
    )
    if seed == 0:
        begun = batch
    state, metrics = run(state, parallel.split_rows(batch, num_microbatches=1))
"""
TWICE = (
    DIGEST.replace("RATE", "0.3")
    + """
digest = hashlib.sha256(str(float(metrics.sums.loss)).encode())
for leaf in jax.tree.leaves(parallel.gather(state)):
    digest.update(leaf.tobytes())
print(jax.device_count(), digest.hexdigest())
"""
)
FORMULAS = (
    DIGEST.replace("RATE", "0.0").replace("range(3)", "range(1)")
    + """
params = reference.to_float64(first)
gradient = jax.tree.map(
    lambda mu: np.float64(mu) / (1 - tiny.optimizer.beta1),
    parallel.gather(state).opt_state[0].mu,
)

def mean(step):
    moved = jax.tree.map(lambda leaf, slope: leaf + step * slope, params, gradient)
    sums = reference.loss_sums(moved, begun, model=tiny.model, label_smoothing=0.1)
    return sums["loss"] / sums["tokens"]

loss = float(metrics.sums.loss) / float(metrics.sums.tokens)
np.testing.assert_allclose(loss, mean(0.0), rtol=1e-5)
# Along the gradient the loss rises by the gradient's square.
square = sum(float((leaf**2).sum()) for leaf in jax.tree.leaves(gradient))
slope = (mean(1e-4) - mean(-1e-4)) / 2e-4
np.testing.assert_allclose(slope, square, rtol=1e-3)
print(jax.device_count(), square > 0)
"""
)


def test_two_processes_make_the_same_digits_and_those_of_the_formulas():
    environment = {"PATH": "", "JAX_PLATFORMS": "cpu"}  # one device, all optimisations
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for program in (TWICE, TWICE + FORMULAS)
    ]
    results = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0, 0], results
    first, second = (output.split() for output, _ in results)
    second, formulas = second[:2], second[2:]
    assert first == second
    assert first[0] == "1"
    assert formulas == ["1", "True"]
