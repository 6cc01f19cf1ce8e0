"""Train with our command line and translate with our translator.

    python worker_vaswani_jax.py JOB

JOB is JSON; `systems.py` lists its keys. A run has its recipe's settings,
except that the clock ends it and all checkpoints are kept.
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np

VASWANI = [sys.executable, "-m", "vaswani_jax"]
UNTIL_KILLED = {
    "training.num_steps": 1_000_000,
    "training.keep_checkpoints": 100_000,
}


def train(job: dict) -> None:
    """Replace this process by `vaswani train`."""
    output = pathlib.Path(job["output"])
    settings = {
        **UNTIL_KILLED,
        "training.checkpoint_every_steps": job["checkpoint_every"],
        "seed": job["seed"],
    }
    flags = [*job["flags"], f"--workdir={output / 'run'}"]
    flags += [f"--config.{key}={value}" for key, value in settings.items()]
    record = {"settings": settings, "versions": find_versions()}
    (output / "settings.json").write_text(json.dumps(record, indent=1))
    # A cache of other runs' compilations would shorten this one.
    for name in ("VASWANI_JAX_CACHE", "JAX_COMPILATION_CACHE_DIR"):
        os.environ.pop(name, None)
    os.environ["XDG_CACHE_HOME"] = str(output / "cache")
    os.execv(sys.executable, [*VASWANI, "train", *flags])


def translate(job: dict) -> None:
    """Translate and measure losses with means of checkpoints."""
    import jax

    import vaswani_jax

    run = pathlib.Path(job["output"]) / "run"
    for model in job["models"]:
        steps = [pathlib.Path(path).name for path in model["checkpoints"]]
        checkpoint = steps[0]
        if len(steps) > 1:
            subprocess.run(
                [*VASWANI, "average", str(run), f"--steps={','.join(steps)}"],
                check=True,
            )
            checkpoint = "averaged"
        translator = vaswani_jax.load(run, checkpoint=checkpoint)
        for search in model["searches"]:
            best = translator.best_hypotheses(
                read(search["words"]),
                beam_size=search["beam"],
                length_penalty=search["penalty"],
            )
            lines = (
                " ".join(token for token in hypothesis.tokens if token != "</s>")
                for hypothesis in best
            )
            write(search["output"], lines)
        if files := model["measure_loss"]:
            pairs = translator.score(read(files["words"]), read(files["references"]))
            log_probs = np.concatenate([pair.log_probs for pair in pairs])
            record = {
                "loss": -float(np.mean(log_probs, dtype=np.float64)),
                "parameters": sum(map(np.size, jax.tree.leaves(translator.params))),
            }
            pathlib.Path(files["output"]).write_text(json.dumps(record))


def read(path: str) -> list[str]:
    """Return the lines of a file."""
    return pathlib.Path(path).read_text("utf-8").split("\n")[:-1]


def write(path: str, lines) -> None:
    """Write lines."""
    pathlib.Path(path).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    from importlib import metadata

    return {name: metadata.version(name) for name in ("jax", "jaxlib", "flax")}


if __name__ == "__main__":
    JOB = json.loads(sys.argv[1])
    {"train": train, "translate": translate}[JOB["action"]](JOB)
