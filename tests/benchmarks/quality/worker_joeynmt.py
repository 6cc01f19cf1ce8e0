"""Train with JoeyNMT's command line and translate with its search.

    joey/bin/python worker_joeynmt.py JOB

JOB is JSON; `systems.py` lists its keys. Needs joeynmt==2.3.0, torch==2.13.0 and
importlib_metadata.
"""

import contextlib
import dataclasses
import functools
import json
import math
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

# github.com/joeynmt/joeynmt/blob/e4436a1b2ae684bbef7a5dd0b202a8557947a0a0/configs/
# iwslt14_deen_bpe_early_stopping.yaml is for 6 layers and 256; a smaller model has only
# the toy data of transformer_small.yaml.
PUBLISHED = {
    "adam_betas": [0.9, 0.999],
    "scheduling": "warmupinversesquareroot",
    "learning_rate": 0.0005,
    "learning_rate_warmup": 4000,
    "label_smoothing": 0.1,
    "dropout": 0.3,
    "embedding_dropout": 0.0,
    "layer_norm": "pre",
}
# Ours: 0.8 * 128**-0.5 * 1000**-0.5 is the highest rate; Adam's epsilon is fixed at
# 1e-8. Layer norms stay before the sub-layers, as in the model above.
RECIPE = {
    **PUBLISHED,
    "adam_betas": [0.9, 0.98],
    "learning_rate": 0.002236,
    "learning_rate_warmup": 1000,
    "embedding_dropout": 0.3,
}
# github.com/LividWo/Revisit-MMT/blob/29bf6b57c832/README-baseline.md: for this model on
# Multi30k, with fairseq.
MULTI30K = {**RECIPE, "learning_rate": 0.005, "learning_rate_warmup": 2000}
SETTINGS = {"published": PUBLISHED, "multi30k": MULTI30K, "recipe": RECIPE}
# Sentences of a greedy search, which computes finished outputs until the last one ends.
GREEDY_BATCH = 8


def make_configuration(job: dict) -> dict:
    """Return JoeyNMT's configuration; its initialisers are those of its IWSLT model."""
    options = SETTINGS[job["settings_name"]]
    text = pathlib.Path(job["text"])
    side = {
        "type": "transformer",
        "num_layers": 4,
        "num_heads": 4,
        "hidden_size": 128,
        "ff_size": 256,
        "dropout": options["dropout"],
        "layer_norm": options["layer_norm"],
        "activation": "relu",
        "embeddings": {
            "embedding_dim": 128,
            "scale": True,
            "dropout": options["embedding_dropout"],
        },
    }

    def language(name: str) -> dict:
        return {
            "lang": name,
            "level": "word",
            "lowercase": False,
            "normalize": False,
            "max_length": -1,
            "voc_file": str(text / "vocabulary.txt"),
        }

    # A checkpoint needs a validation; one of two pairs takes little time.
    return {
        "name": "peer",
        "joeynmt_version": "2.3.0",
        "model_dir": job["output"] + "/model",
        "use_cuda": False,
        "random_seed": job["seed"],
        "normalization": "tokens",
        "data": {
            "train": str(text / "train"),
            "dev": job["output"] + "/two",
            "dataset_type": "plain",
            "src": language("source"),
            "trg": language("target"),
        },
        "testing": {"beam_size": 1, "eval_metrics": [], "max_output_length": 20},
        "training": {
            "optimizer": "adam",
            "normalization": "tokens",
            "adam_betas": options["adam_betas"],
            "scheduling": options["scheduling"],
            "learning_rate": options["learning_rate"],
            "learning_rate_warmup": options["learning_rate_warmup"],
            "learning_rate_min": 1e-8,
            "weight_decay": 0.0,
            "label_smoothing": options["label_smoothing"],
            "loss": "crossentropy",
            "batch_size": job["batch_tokens"],
            "batch_type": "token",
            "early_stopping_metric": "loss",
            "epochs": 100_000,
            "logging_freq": job["log_every"],
            "validation_freq": job["checkpoint_every"],
            "print_valid_sents": [],
            "keep_best_ckpts": -1,
            "overwrite": True,
            "shuffle": True,
        },
        "model": {
            "initializer": "xavier_uniform",
            "bias_initializer": "zeros",
            "init_gain": 1.0,
            "embed_initializer": "xavier_uniform",
            "embed_init_gain": 1.0,
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": side,
            "decoder": side,
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
    for side in ("source", "target"):
        lines = pathlib.Path(job["text"], f"valid.{side}").read_text("utf-8")
        (output / f"two.{side}").write_text("\n".join(lines.split("\n")[:2]) + "\n")
    subprocess.run(
        [sys.executable, "-m", "joeynmt", "train", str(path), "--skip-test"], check=True
    )


def average(paths: list[str]) -> dict:
    """Return the mean of the parameters, as scripts/average_checkpoints.py does."""
    import torch

    total: dict = {}
    for path in paths:
        checkpoint = torch.load(path, map_location="cpu", weights_only=False)
        for name, value in checkpoint["model_state"].items():
            total[name] = total[name] + value if name in total else value.clone()
    return {
        name: value / len(paths) if value.is_floating_point() else value // len(paths)
        for name, value in total.items()
    }


def translate(job: dict) -> None:
    """Translate and measure losses with means of checkpoints."""
    import torch

    torch.set_num_threads(job["threads"])

    @functools.cache  # JoeyNMT takes seconds for the vocabularies, at each reading.
    def read(source: str, target: str | None = None) -> Lines:
        return read_lines(job, source=source, target=target)

    model = None
    for model_job in job["models"]:
        parameters = average(model_job["checkpoints"])
        for search in model_job["searches"]:
            lines = read(search["source"])
            result = predict(
                job,
                model,
                parameters,
                lines,
                beam_size=search["beam"],
                beam_alpha=search["penalty"],
                max_output_length=job["longest"],
            )
            model = result.model
            outputs = [""] * len(lines.order)
            for index, subwords in zip(lines.order, result.tokens, strict=True):
                outputs[index] = " ".join(s for s in subwords if s != "</s>")
            text = "".join(f"{line}\n" for line in outputs)
            pathlib.Path(search["output"]).write_text(text, "utf-8")
        if files := model_job["measure_loss"]:
            result = predict(
                job,
                model,
                parameters,
                read(files["source"], files["target"]),
                return_prob="ref",
                return_attention=True,
            )
            model = result.model
            record = {
                "loss": math.log(result.scores["ppl"]),
                "parameters": sum(p.numel() for p in model.parameters()),
            }
            pathlib.Path(files["output"]).write_text(json.dumps(record))


@dataclasses.dataclass(frozen=True)
class Lines:
    """The lines of a file, or of two, as JoeyNMT reads them.

    Attributes:
        order: The line of the file that each line is.
        dataset: The lines.
        source_vocabulary: The subwords of the source.
        target_vocabulary: The subwords of the target.
        has_target: True if each line has its translation.
    """

    order: list[int]
    dataset: Any
    source_vocabulary: Any
    target_vocabulary: Any
    has_target: bool


def read_lines(job: dict, *, source: str, target: str | None) -> Lines:
    """Return the lines of a file of sources, and of one of targets if there is one."""
    from joeynmt.config import parse_global_args
    from joeynmt.data import load_data

    paths = {"source": source} | ({"target": target} if target else {})
    data = parse_global_args(make_configuration(job), mode="test").data
    with tempfile.TemporaryDirectory() as directory:
        order = sort_lines(paths, directory)
        source_vocabulary, target_vocabulary, _, dataset, _ = load_data(
            {**data, "dev": f"{directory}/part"}, datasets=["dev"]
        )
    return Lines(
        order=order,
        dataset=dataset,
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
        has_target=target is not None,
    )


@dataclasses.dataclass(frozen=True)
class Predictions:
    """JoeyNMT's predictions for lines.

    Attributes:
        model: The model, to predict again.
        scores: The measurements, with the perplexity as `ppl`.
        tokens: The subwords of each output.
    """

    model: Any
    scores: dict
    tokens: list


def predict(
    job: dict, model, parameters: dict, lines: Lines, **options: object
) -> Predictions:
    """Return JoeyNMT's predictions; a model of None is built."""
    import torch
    from joeynmt import prediction
    from joeynmt.config import parse_test_args
    from joeynmt.model import build_model

    if model is None:
        model = build_model(
            make_configuration(job)["model"],
            src_vocab=lines.source_vocabulary,
            trg_vocab=lines.target_vocabulary,
        )
        # Without smoothing, so that the losses of all systems compare.
        model.loss_function = ("crossentropy", 0.0)
    model.load_state_dict(parameters)
    model.eval()
    batch = GREEDY_BATCH if options.get("beam_size") == 1 else job["batch"]
    test = {"batch_size": batch, "eval_metrics": [], **options}
    with contextlib.ExitStack() as stack:
        if not lines.has_target:
            stack.enter_context(project_last_position(model.decoder.output_layer))
        scores, _, _, tokens, _, _ = prediction.predict(
            model=model,
            data=lines.dataset,
            device=torch.device("cpu"),
            n_gpu=0,
            compute_loss=lines.has_target,
            normalization="tokens",
            args=parse_test_args(test, mode="test"),
            autocast={"device_type": "cpu", "enabled": False},
        )
    return Predictions(model=model, scores=scores, tokens=tokens)


@contextlib.contextmanager
def project_last_position(output_layer) -> Iterator[None]:
    """Project the last position alone onto the subwords.

    JoeyNMT's search decodes all positions for each subword, and reads the logits of the
    last. Most of its time would go into the others.
    """
    hook = output_layer.register_forward_pre_hook(
        lambda _, inputs: (inputs[0][:, -1:], *inputs[1:])
    )
    try:
        yield
    finally:
        hook.remove()


def sort_lines(paths: dict[str, str], directory: str) -> list[int]:
    """Write lines by their length, because JoeyNMT takes batches in order."""
    order: list[int] = []
    for side, path in paths.items():
        lines = pathlib.Path(path).read_text("utf-8").split("\n")[:-1]
        order = order or sorted(range(len(lines)), key=lambda n: len(lines[n].split()))
        text = "".join(f"{lines[index]}\n" for index in order)
        pathlib.Path(directory, f"part.{side}").write_text(text, "utf-8")
    return order


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    from importlib import metadata

    return {name: metadata.version(name) for name in ("joeynmt", "torch")}


if __name__ == "__main__":
    JOB = json.loads(sys.argv[1])
    {"train": train, "translate": translate}[JOB["action"]](JOB)
