"""Train and translate with EOLE's command line, in its own environment.

    eole/bin/python worker_eole.py JOB

JOB is JSON; `systems.py` lists its keys. Needs eole==0.6.4 and torch==2.13.0.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

EOLE = [sys.executable, "-m", "eole.bin.main"]
# github.com/eole-nlp/eole/blob/main/recipes/wmt17/wmt17_ende_spm.yaml, for a big model;
# there is none for a small one. Its learning rate is multiplied by d_model**-0.5.
PUBLISHED = {
    "optim": "adamw",
    "adam_beta2": 0.998,
    "decay_method": "noam",
    "learning_rate": 2.0,
    "warmup_steps": 4000,
    "dropout": [0.1],
    "attention_dropout": [0.1],
    "label_smoothing": 0.1,
    "max_grad_norm": 0.0,
    "param_init_method": "xavier_uniform",
}
RECIPE = {
    **PUBLISHED,
    "optim": "adam",
    "adam_beta2": 0.98,
    "adam_eps": 1e-9,
    "learning_rate": 0.8,
    "warmup_steps": 1000,
    "dropout": [0.3],
    "attention_dropout": [0.0],
}
# github.com/LividWo/Revisit-MMT/blob/29bf6b57c832/README-baseline.md: for this model on
# Multi30k, with fairseq.
MULTI30K = {
    **RECIPE,
    "learning_rate": 0.005 * (128 * 2000) ** 0.5,
    "warmup_steps": 2000,
}
# EOLE leaves tied matrices out of its files.
TIED = {"tgt_emb.embeddings.weight", "generator.weight"}
SETTINGS = {"published": PUBLISHED, "multi30k": MULTI30K, "recipe": RECIPE}


def make_configuration(job: dict) -> dict:
    """Return EOLE's configuration; its layer norms come before each sub-layer."""
    text = pathlib.Path(job["text"])
    vocabulary = str(text / "vocabulary.txt")
    return {
        "seed": job["seed"],
        "report_every": job["log_every"],
        "src_vocab": vocabulary,
        "tgt_vocab": vocabulary,
        "share_vocab": True,
        "src_vocab_size": 100_000,
        "tgt_vocab_size": 100_000,
        "vocab_size_multiple": 1,
        "n_sample": 0,
        "save_data": job["output"] + "/data",
        "overwrite": True,
        "data": {
            "train": {
                "path_src": str(text / "train.source"),
                "path_tgt": str(text / "train.target"),
                "transforms": [],
            }
        },
        "transforms": [],
        "training": {
            "model_path": job["output"] + "/model",
            "save_checkpoint_steps": job["checkpoint_every"],
            "keep_checkpoint": -1,
            "train_steps": 10_000_000,
            "valid_steps": 10_000_000,
            "batch_type": "tokens",
            "batch_size": job["batch_tokens"],
            "batch_size_multiple": 1,
            "normalization": "tokens",
            "accum_count": [1],
            "accum_steps": [0],
            # Fewer than all pairs: EOLE reads the text again until a bucket is full,
            # and leaves a source out of a batch that has it, so that a larger one would
            # repeat the pairs of common lengths and drop the others.
            "bucket_size": 25_000,
            # A worker would take a core of the two from the updates.
            "num_workers": 0,
            "gpu_ranks": [],
            "world_size": 1,
            "compute_dtype": "fp32",
            "use_amp": False,
            "average_decay": 0.0,
            "dropout_steps": [0],
            **SETTINGS[job["settings_name"]],
        },
        "model": {
            "architecture": "transformer",
            "layers": 4,
            "heads": 4,
            "hidden_size": 128,
            "transformer_ff": 256,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "add_qkvbias": True,
            "add_ffnbias": True,
            "embeddings": {
                "word_vec_size": 128,
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
    }


def train(job: dict) -> None:
    """Train until killed; every checkpoint is saved."""
    import yaml

    output = pathlib.Path(job["output"])
    settings = make_configuration(job)
    path = output / "config.yaml"
    path.write_text(yaml.safe_dump(settings))
    record = {"settings": settings, "versions": find_versions()}
    (output / "settings.json").write_text(json.dumps(record, indent=1))
    subprocess.run([*EOLE, "train", "--config", str(path)], check=True)


def average(paths: list[str], target: pathlib.Path) -> str:
    """Write a model whose parameters are the mean of checkpoints'; return its path."""
    from safetensors.torch import load_file, save_file

    if len(paths) == 1:
        return paths[0]
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(paths[-1], target, ignore=shutil.ignore_patterns("optimizer.pt"))
    for file in target.glob("*.safetensors"):
        total: dict = {}
        for path in paths:
            for name, value in load_file(pathlib.Path(path, file.name)).items():
                total[name] = total[name] + value if name in total else value
        save_file(
            {name: (v / len(paths)).contiguous() for name, v in total.items()}, file
        )
    return str(target)


def make_searchable(path: str, target: pathlib.Path) -> str:
    """Write a model with all parameters that EOLE's search reads; return its path.

    Its checkpoints lack the tied matrices, and its encoder trains without the bias of
    an attention's last product. The search leaves what is missing as the memory
    happens to be, and writes nothing but unknown subwords.
    """
    from safetensors.torch import load_file, save_file

    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(path, target, ignore=shutil.ignore_patterns("optimizer.pt"))
    file = target / "model.00.safetensors"
    save_file(add_missing(load_file(file)), file)
    return str(target)


def add_missing(parameters: dict) -> dict:
    """Return parameters with those that EOLE leaves out of its files."""
    parameters = dict(parameters)
    for name in TIED:
        parameters[name] = parameters["src_emb.embeddings.weight"].clone()
    for name, weight in list(parameters.items()):
        bias = name.removesuffix("weight") + "bias"
        if name.endswith("self_attn.final_linear.weight") and bias not in parameters:
            parameters[bias] = weight.new_zeros(len(weight))
    return parameters


def translate(job: dict) -> None:
    """Translate and measure losses with means of checkpoints."""
    output = pathlib.Path(job["output"])
    for model in job["models"]:
        path = average(model["checkpoints"], output / "averaged")
        searched = make_searchable(path, output / "searched")
        for search in model["searches"]:
            options = {
                "model_path": searched,
                "src": search["source"],
                "output": search["output"],
                "beam_size": search["beam"],
                "length_penalty": "wu",
                "alpha": search["penalty"],
                "max_length": job["longest"],
                "max_length_ratio": 0,  # no other limit
                "batch_size": job["batch"],
                "batch_type": "sents",
                "world_size": 1,
                "compute_dtype": "fp32",
            }
            flags = [f for key, value in options.items() for f in _flag(key, value)]
            subprocess.run([*EOLE, "predict", *flags], check=True)
        if files := model["measure_loss"]:
            record = measure_loss(path, files, job)
            pathlib.Path(files["output"]).write_text(json.dumps(record))


def _flag(key: str, value: object) -> list[str]:
    return [f"--{key}", str(value)]


def measure_loss(path: str, files: dict, job: dict) -> dict:
    """Return a text's cross entropy by EOLE's own model, unsmoothed, and its size."""
    import torch
    from eole.config.run import TrainConfig
    from eole.models.model import get_model_class
    from safetensors.torch import load_file

    words = json.loads(pathlib.Path(path, "vocab.json").read_text("utf-8"))["src"]
    table = {word: token for token, word in enumerate(words)}
    specials = {
        "pad_token": "<blank>",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
    }
    vocabularies = {
        "src": table,
        "tgt": table,
        "decoder_start_token": "<s>",
        "specials": specials,
    }
    config = TrainConfig(**make_configuration(job))
    model = get_model_class(config.model).for_training(
        config.model, vocabularies, config.training
    )
    values = load_file(pathlib.Path(path, "model.00.safetensors"))
    missing, unexpected = model.load_state_dict(values, strict=False)
    if unexpected or any(not name.endswith(".pe") for name in {*missing} - TIED):
        raise ValueError(f"missing {missing}, unexpected {unexpected}")
    model.eval()
    ids = {
        side: [
            [table.get(subword, table["<unk>"]) for subword in line.split()]
            for line in pathlib.Path(files[side]).read_text("utf-8").split("\n")[:-1]
        ]
        for side in ("source", "target")
    }
    blank, start, end = (table[name] for name in ("<blank>", "<s>", "</s>"))
    total, count = 0.0, 0
    for first in range(0, len(ids["source"]), job["batch"]):
        part = slice(first, first + job["batch"])
        source = _pad(ids["source"][part], blank)
        target = _pad([[start, *row, end] for row in ids["target"][part]], blank)
        lengths = torch.tensor([len(row) for row in ids["source"][part]])
        with torch.inference_mode():
            output = model(source, target, lengths)
            logits = model.generator(output.dec_out)
        total += torch.nn.functional.cross_entropy(
            logits.flatten(0, 1),
            target[:, 1:].flatten(),
            ignore_index=blank,
            reduction="sum",
        ).item()
        count += int((target[:, 1:] != blank).sum())
    size = sum(parameter.numel() for parameter in model.parameters())
    return {"loss": total / count, "parameters": size}


def _pad(rows: list[list[int]], value: int):
    import torch

    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    from importlib import metadata

    return {name: metadata.version(name) for name in ("eole", "torch")}


if __name__ == "__main__":
    JOB = json.loads(sys.argv[1])
    os.environ.setdefault("OMP_NUM_THREADS", str(JOB["threads"]))
    {"train": train, "translate": translate}[JOB["action"]](JOB)
