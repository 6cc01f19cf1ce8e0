"""Train, translate and measure losses with Marian, in its own environment.

    marian/bin/python worker_marian.py JOB

JOB is JSON; `systems.py` lists its keys. Needs pymarian==1.12.42 alone.
"""

import json
import pathlib
import subprocess
import sys

MARIAN = [sys.executable, "-m", "pymarian"]
# The model: the size of the task, post-norm as in `--task transformer-base`. With
# pre-norm this version's decoder gives its outputs other probabilities than its scorer
# gives the same outputs, and they are no sentences.
MODEL = {
    "type": "transformer",
    "dim-emb": 128,
    "enc-depth": 4,
    "dec-depth": 4,
    "transformer-heads": 4,
    "transformer-dim-ffn": 256,
    "transformer-ffn-activation": "relu",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "tied-embeddings-all": True,
}
# github.com/marian-nmt/marian-examples/blob/master/transformer-intro/
# transformer-model.yml, the same as `--task transformer-base`. It has no batches for a
# CPU (mini-batch-fit asks for a GPU's memory): ours.
PUBLISHED = {
    "cost-type": "ce-mean-words",
    "optimizer-params": [0.9, 0.98, 1e-9],
    "learn-rate": 0.0003,
    "lr-warmup": 16000,
    "lr-decay-inv-sqrt": 16000,
    "label-smoothing": 0.1,
    "clip-norm": 0,
    "exponential-smoothing": 1e-4,
    "transformer-dropout": 0.1,
}
# Ours: 0.8 * 128**-0.5 * 1000**-0.5 is the highest rate.
RECIPE = {
    **PUBLISHED,
    "learn-rate": 0.002236,
    "lr-warmup": 1000,
    "lr-decay-inv-sqrt": 1000,
    "transformer-dropout": 0.3,
}
# github.com/LividWo/Revisit-MMT/blob/29bf6b57c832/README-baseline.md: for this model on
# Multi30k, with fairseq.
MULTI30K = {
    **RECIPE,
    "learn-rate": 0.005,
    "lr-warmup": 2000,
    "lr-decay-inv-sqrt": 2000,
}
SETTINGS = {
    "published": PUBLISHED,
    "multi30k": MULTI30K,
    "recipe": RECIPE,
}


def train(job: dict) -> None:
    """Train until killed; every checkpoint is saved."""
    output = pathlib.Path(job["output"])
    settings = {
        **MODEL,
        **SETTINGS[job["settings_name"]],
        "mini-batch": 1000,
        "mini-batch-words": job["batch_tokens"],
        "maxi-batch": 1000,
        "max-length": 101,
        "seed": job["seed"],
        "after": "0e",
        "save-freq": f"{job['checkpoint_every']}u",
        "disp-freq": f"{job['log_every']}u",
        "lr-report": True,
        "keep-best": False,
        "shuffle-in-ram": True,
        "cpu-threads": job["threads"],
        "sync-sgd": True,
        "workspace": 3000,
    }
    vocabulary = write_vocabulary(pathlib.Path(job["text"]))
    record = {"settings": settings, "versions": find_versions()}
    (output / "settings.json").write_text(json.dumps(record, indent=1))
    files = {
        "model": str(output / "model.npz"),
        "train-sets": [f"{job['text']}/train.{s}" for s in ("source", "target")],
        "vocabs": [vocabulary, vocabulary],
        "tempdir": str(output),
    }
    run("train", {**settings, **files})


def _flag(key: str, value: object) -> list[str]:
    if isinstance(value, bool):
        return [f"--{key}"] if value else [f"--{key}", "false"]
    values = value if isinstance(value, list) else [value]
    return [f"--{key}", *map(str, values)]


def count_parameters(path: str) -> int:
    """Return the number of a model's parameters."""
    import numpy as np

    with np.load(path) as arrays:
        return sum(arrays[n].size for n in arrays if not n.startswith("special:"))


def write_vocabulary(text: pathlib.Path) -> str:
    """Write the subwords in Marian's form; return the file."""
    path = text / "vocabulary.marian.yml"
    subwords = (text / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    with path.open("w", encoding="utf-8") as file:
        for token, subword in enumerate(["</s>", "<unk>", *subwords]):
            file.write(f"{json.dumps(subword, ensure_ascii=False)}: {token}\n")
    return str(path)


def translate(job: dict) -> None:
    """Translate and measure losses with smoothed models."""
    vocabulary = str(pathlib.Path(job["text"]) / "vocabulary.marian.yml")
    common = {
        "vocabs": [vocabulary, vocabulary],
        "cpu-threads": job["threads"],
        "workspace": 1000,
        "quiet": True,
    }
    for model in job["models"]:
        [path] = model["checkpoints"]  # It averages while it trains.
        for search in model["searches"]:
            settings = {
                **common,
                "models": path,
                "quiet-translation": True,
                "input": search["source"],
                "output": search["output"],
                "beam-size": search["beam"],
                "normalize": search["penalty"],
                "mini-batch": job["batch"],
                "maxi-batch": 100,
                "max-length": 1000,
                "max-length-factor": 3,
            }
            run("decode", settings)
        if files := model["measure_loss"]:
            settings = {
                **common,
                "model": path,
                "train-sets": [files["source"], files["target"]],
                "summary": "ce-mean-words",
                "max-length": 1000,
            }
            loss = abs(float(run("score", settings).split()[-1]))
            record = {"loss": loss, "parameters": count_parameters(path)}
            pathlib.Path(files["output"]).write_text(json.dumps(record))


def run(program: str, settings: dict) -> str:
    """Run one of Marian's programs; return what it prints."""
    flags = [flag for key, value in settings.items() for flag in _flag(key, value)]
    result = subprocess.run(
        [*MARIAN, program, *flags], check=True, stdout=subprocess.PIPE, text=True
    )
    return result.stdout


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    from importlib import metadata

    return {"pymarian": metadata.version("pymarian")}


if __name__ == "__main__":
    JOB = json.loads(sys.argv[1])
    {"train": train, "translate": translate}[JOB["action"]](JOB)
