"""Train and translate with MarianMT of transformers and its Trainer.

    hf/bin/python worker_transformers.py JOB

JOB is JSON; `systems.py` lists its keys. Needs transformers==5.23.0, accelerate and
torch==2.13.0.
"""

import json
import pathlib
import random
import sys

PAD, BOS, EOS, UNK = range(4)
IGNORED = -100
# transformers publishes no settings to train a translation model from nothing: ours.
# 0.8 * 128**-0.5 * 1000**-0.5 is the highest rate. Its layer norms come after, and its
# first weights are N(0, 0.02), which has no other setting in its documentation.
RECIPE = {
    "learning_rate": 0.002236,
    "warmup_steps": 1000,
    "lr_scheduler_type": "inverse_sqrt",
    "adam_beta1": 0.9,
    "adam_beta2": 0.98,
    "adam_epsilon": 1e-9,
    "weight_decay": 0.0,
    "max_grad_norm": 0.0,
    "label_smoothing": 0.1,
    "dropout": 0.3,
    "init_std": 0.02,
    "optim": "adamw_torch_fused",
}
SETTINGS = {
    # github.com/LividWo/Revisit-MMT/blob/29bf6b57c832/README-baseline.md: for this
    # model on Multi30k, with fairseq.
    "multi30k": {**RECIPE, "learning_rate": 0.005, "warmup_steps": 2000},
    # If the loss stalls: post-norm models can need lower rates, longer warm-up.
    "lower_rate": {**RECIPE, "learning_rate": 0.0005, "warmup_steps": 4000},
    "recipe": RECIPE,
}


def build(job: dict):
    """Return the model, its parameters random."""
    from transformers import MarianConfig, MarianMTModel

    options = SETTINGS[job["settings_name"]]
    config = MarianConfig(
        vocab_size=len(read_vocabulary(job)),
        d_model=128,
        encoder_layers=4,
        decoder_layers=4,
        encoder_ffn_dim=256,
        decoder_ffn_dim=256,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        activation_function="relu",
        dropout=options["dropout"],
        attention_dropout=0.0,
        activation_dropout=0.0,
        init_std=options["init_std"],
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        decoder_start_token_id=BOS,
        forced_eos_token_id=None,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
    )
    return MarianMTModel(config)


def read_vocabulary(job: dict) -> dict[str, int]:
    """Return the id of each subword."""
    text = pathlib.Path(job["text"], "vocabulary.txt").read_text("utf-8")
    subwords = ["<pad>", "<s>", "</s>", "<unk>", *text.split("\n")[:-1]]
    return {subword: token for token, subword in enumerate(subwords)}


def read_ids(path: str, vocabulary: dict[str, int]) -> list[list[int]]:
    """Return the ids of each line, with an end mark."""
    lines = pathlib.Path(path).read_text("utf-8").split("\n")[:-1]
    return [[*(vocabulary.get(s, UNK) for s in line.split()), EOS] for line in lines]


def pad(rows: list[list[int]], value: int):
    """Return rows of one length."""
    import torch

    longest = max(map(len, rows))
    return torch.tensor([row + [value] * (longest - len(row)) for row in rows])


def collate(pairs: list[tuple[list[int], list[int]]]) -> dict:
    """Return what the model reads of pairs."""
    sources, targets = zip(*pairs, strict=True)
    source = pad(list(sources), PAD)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": pad([[BOS, *target[:-1]] for target in targets], PAD),
        "labels": pad(list(targets), IGNORED),
    }


class Batches:
    """Batches of pairs of similar length, within a number of tokens a side.

    The Trainer has batches of sentences alone; these are of 4,096 tokens, as ours.
    """

    def __init__(self, lengths: list[tuple[int, int]], tokens: int, seed: int) -> None:
        self._lengths, self._tokens = lengths, tokens
        self._random = random.Random(seed)
        self._batches = self._plan()

    def _plan(self) -> list[list[int]]:
        order = list(range(len(self._lengths)))
        self._random.shuffle(order)
        order.sort(key=lambda index: max(self._lengths[index]))
        batches, batch, longest = [], [], 0
        for index in order:
            length = max(longest, *self._lengths[index])
            if batch and length * (len(batch) + 1) > self._tokens:
                batches.append(batch)
                batch, length = [], max(self._lengths[index])
            batch, longest = [*batch, index], length
        batches.append(batch)
        self._random.shuffle(batches)
        return batches

    def __iter__(self):
        self._batches = self._plan()
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def train(job: dict) -> None:
    """Train until killed; every checkpoint is saved."""
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

    torch.set_num_threads(job["threads"])
    set_seed(job["seed"])
    options = SETTINGS[job["settings_name"]]
    vocabulary = read_vocabulary(job)
    sides = [
        read_ids(f"{job['text']}/train.{side}", vocabulary)
        for side in ("source", "target")
    ]
    pairs = list(zip(*sides, strict=True))
    model = build(job)
    model.config.use_cache = False
    output = pathlib.Path(job["output"])
    record = {
        "settings": options,
        "model": model.config.to_dict(),
        "parameters": model.num_parameters(),
        "versions": find_versions(),
    }
    (output / "settings.json").write_text(json.dumps(record, indent=1, default=str))
    target_tokens = 0

    def loss(outputs, labels, num_items_in_batch=None):
        nonlocal target_tokens
        target_tokens += int((labels != IGNORED).sum())
        return torch.nn.functional.cross_entropy(
            outputs.logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=IGNORED,
            label_smoothing=options["label_smoothing"],
        )

    class Report(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **_):
            values = {"step": state.global_step, "target_tokens": target_tokens}
            print("PROGRESS", json.dumps({**logs, **values}), flush=True)

    class TokenTrainer(Trainer):
        def get_train_dataloader(self):
            lengths = [(len(source), len(target)) for source, target in pairs]
            return torch.utils.data.DataLoader(
                pairs,
                batch_sampler=Batches(lengths, job["batch_tokens"], job["seed"]),
                collate_fn=collate,
            )

    names = (
        "learning_rate warmup_steps lr_scheduler_type adam_beta1 adam_beta2 "
        "adam_epsilon weight_decay max_grad_norm optim"
    )
    arguments = TrainingArguments(
        output_dir=str(output),
        max_steps=10_000_000,
        logging_steps=job["log_every"],
        save_steps=job["checkpoint_every"],
        save_only_model=True,
        save_total_limit=None,
        report_to="none",
        use_cpu=True,
        seed=job["seed"],
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        **{name: options[name] for name in names.split()},
    )
    TokenTrainer(
        model=model,
        args=arguments,
        train_dataset=pairs,
        compute_loss_func=loss,
        callbacks=[Report()],
    ).train()


def average(paths: list[str]) -> dict:
    """Return the mean of the parameters of checkpoints."""
    from safetensors.torch import load_file

    total: dict = {}
    for path in paths:
        for name, value in load_file(f"{path}/model.safetensors").items():
            total[name] = total[name] + value if name in total else value
    return {name: value / len(paths) for name, value in total.items()}


def translate(job: dict) -> None:
    """Translate and measure losses with means of checkpoints."""
    import torch

    torch.set_num_threads(job["threads"])
    vocabulary = read_vocabulary(job)
    for model in job["models"]:
        network = load(model["checkpoints"], job)
        for search in model["searches"]:
            lines = generate(network, search, vocabulary, job)
            text = "".join(f"{line}\n" for line in lines)
            pathlib.Path(search["output"]).write_text(text, "utf-8")
        if files := model["measure_loss"]:
            loss = measure_loss(network, files, vocabulary, job)
            learned = (p.numel() for p in network.parameters() if p.requires_grad)
            record = {"loss": loss, "parameters": sum(learned)}
            pathlib.Path(files["output"]).write_text(json.dumps(record))


def load(checkpoints: list[str], job: dict):
    """Return the model with the mean of the parameters of checkpoints."""
    network = build(job)
    missing, unexpected = network.load_state_dict(average(checkpoints), strict=False)
    tied = [name for name in missing if "embed" in name or name == "lm_head.weight"]
    if unexpected or len(tied) < len(missing):
        raise ValueError(f"missing {missing}, unexpected {unexpected}")
    network.tie_weights()
    return network.eval()


def generate(network, search: dict, vocabulary: dict[str, int], job: dict) -> list[str]:
    """Return the best output of each line, as subwords."""
    import torch

    subwords = list(vocabulary)
    rows = read_ids(search["source"], vocabulary)
    outputs = [""] * len(rows)
    for batch in in_batches(rows, job["batch"]):
        source = pad([rows[index] for index in batch], PAD)
        with torch.inference_mode():
            generated = network.generate(
                input_ids=source,
                attention_mask=(source != PAD).long(),
                num_beams=search["beam"],
                length_penalty=search["penalty"],
                do_sample=False,
                max_new_tokens=job["longest"],
            )
        for index, ids in zip(batch, generated.tolist(), strict=True):
            words = [subwords[token] for token in ids if token not in (PAD, BOS, EOS)]
            outputs[index] = " ".join(words)
    return outputs


def measure_loss(network, files: dict, vocabulary: dict[str, int], job: dict) -> float:
    """Return the cross entropy of a text, a target token, without smoothing."""
    import torch

    sides = [read_ids(files[side], vocabulary) for side in ("source", "target")]
    pairs = list(zip(*sides, strict=True))
    total, count = 0.0, 0
    for batch in in_batches(sides[1], job["batch"]):
        inputs = collate([pairs[index] for index in batch])
        labels = inputs.pop("labels")
        with torch.inference_mode():
            logits = network(**inputs, use_cache=False).logits
        total += torch.nn.functional.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        ).item()
        count += int((labels != IGNORED).sum())
    return total / count


def in_batches(rows: list[list[int]], size: int) -> list[list[int]]:
    """Return the indices of rows of similar length."""
    order = sorted(range(len(rows)), key=lambda index: len(rows[index]))
    return [order[start : start + size] for start in range(0, len(order), size)]


def find_versions() -> dict[str, str]:
    """Return the versions of the packages that compute."""
    from importlib import metadata

    return {name: metadata.version(name) for name in ("transformers", "torch")}


if __name__ == "__main__":
    JOB = json.loads(sys.argv[1])
    {"train": train, "translate": translate}[JOB["action"]](JOB)
