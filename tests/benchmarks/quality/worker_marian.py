"""Train, translate and measure losses with Marian, in its own environment.

    marian/bin/python worker_marian.py JOB

JOB is JSON; `systems.py` lists its keys. Needs pymarian==1.12.42, and for models with
pre-norm ctranslate2==4.8.5, which is made to translate with Marian's models.
"""

import json
import pathlib
import subprocess
import sys

MARIAN = [sys.executable, "-m", "pymarian"]
# The model: the size of the task, post-norm as in `--task transformer-base`.
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
# The layer norms of `--task transformer-base-prenorm`: post-norm learns slowly here.
# This version's decoder gives its outputs other probabilities than its scorer gives the
# same outputs, and they are no sentences; CTranslate2 agrees with the scorer.
PRENORM = {
    **RECIPE,
    "transformer-preprocess": "n",
    "transformer-postprocess": "da",
    "transformer-postprocess-top": "n",
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
    "prenorm": PRENORM,
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
        if job["settings_name"] == "prenorm":
            search_by_ctranslate2(job, path, vocabulary, model["searches"])
        else:
            search(job, path, common, model["searches"])
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


def search(job: dict, path: str, common: dict, searches: list[dict]) -> None:
    """Write the outputs of searches with one model, by Marian's decoder."""
    for options in searches:
        settings = {
            **common,
            "models": path,
            "quiet-translation": True,
            "input": options["source"],
            "output": options["output"],
            "beam-size": options["beam"],
            "normalize": options["penalty"],
            "mini-batch": job["batch"],
            "maxi-batch": 100,
            "max-length": 1000,
            "max-length-factor": 3,
        }
        run("decode", settings)


def search_by_ctranslate2(
    job: dict, path: str, vocabulary: str, searches: list[dict]
) -> None:
    """Write the outputs of searches with one model, by CTranslate2."""
    import ctranslate2
    import yaml
    from ctranslate2.converters import marian

    def read_config(arrays: dict) -> dict:
        # CTranslate2 4.8.5 expects one NUL at the end of the text, not a padding.
        text = arrays["special:model.yml"].tobytes().partition(b"\0")[0]
        return yaml.safe_load(text)

    marian._get_model_config = read_config
    directory = str(pathlib.Path(job["output"], "ctranslate2"))
    marian.MarianConverter(path, [vocabulary] * 2).convert(directory, force=True)
    translator = ctranslate2.Translator(
        directory, device="cpu", inter_threads=1, intra_threads=job["threads"]
    )
    for options in searches:
        lines = pathlib.Path(options["source"]).read_text(encoding="utf-8").split("\n")
        results = translator.translate_batch(
            [line.split() for line in lines[:-1]],
            beam_size=options["beam"],
            length_penalty=options["penalty"],
            max_batch_size=job["batch"],
            max_decoding_length=job["longest"],
        )
        outputs = [" ".join(result.hypotheses[0]) + "\n" for result in results]
        pathlib.Path(options["output"]).write_text("".join(outputs), encoding="utf-8")


def run(program: str, settings: dict) -> str:
    """Run one of Marian's programs; return what it prints."""
    flags = [flag for key, value in settings.items() for flag in _flag(key, value)]
    result = subprocess.run(
        [*MARIAN, program, *flags], check=True, stdout=subprocess.PIPE, text=True
    )
    return result.stdout


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    from importlib import metadata, util

    names = ["pymarian", *(["ctranslate2"] if util.find_spec("ctranslate2") else [])]
    return {name: metadata.version(name) for name in names}


if __name__ == "__main__":
    JOB = json.loads(sys.argv[1])
    {"train": train, "translate": translate}[JOB["action"]](JOB)
