"""Eight virtual devices on a CPU, so that every test can spread over devices."""

import os

import hypothesis

# Read once, when jax starts its backend. Tests compile far more than they compute:
# without the optimisations of LLVM they take half the time.
# `JAX_PLATFORMS=cuda pytest -m gpu` runs those that need a GPU, on it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if os.environ["JAX_PLATFORMS"] == "cpu":
    os.environ["XLA_FLAGS"] = " ".join(
        (
            os.environ.get("XLA_FLAGS", ""),
            "--xla_force_host_platform_device_count=8",
            "--xla_backend_optimization_level=0",
        )
    )

# A busy machine is slow, not wrong.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")
