"""Make a run of a directory that `MarianMTModel` loads, as the OPUS models are."""

import dataclasses
import json
import pathlib
from collections.abc import Collection, Sequence
from typing import Any

import ml_collections

from vaswani_jax.checkpoints import average, run_record
from vaswani_jax.checkpoints.store import Checkpoint
from vaswani_jax.core import config, data_rules, files, locales, parsing, types
from vaswani_jax.data import manifest
from vaswani_jax.data.marian_subwords import MarianSubwords
from vaswani_jax.data.subwords import Subwords
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.exchange import marian_settings, marian_weights


@dataclasses.dataclass(frozen=True)
class ImportedModel:
    """A model as our programs take it.

    Attributes:
        settings: Of model, search and vocabulary from the directory, the rest of the
            preset.
        params: NumPy arrays.
        vocabulary: The subwords in our order.
        notes: Settings of its generation and training that we have not.
    """

    settings: config.Config
    params: Any
    vocabulary: Vocabulary
    notes: list[str]

    @property
    def checkpoint(self) -> Checkpoint:
        """The parameters and their record, as of a training's step 0."""
        record = {
            "vocabulary": self.vocabulary.fingerprint,
            "config": config.to_dict(self.settings),
        }
        return Checkpoint(0, {"params": self.params}, record)


def load(
    directory: pathlib.Path,
    values: ml_collections.ConfigDict,
    *,
    locales: Sequence[str] = ("", ""),
    overridden: Collection[str] = (),
) -> ImportedModel:
    """Read a directory that `MarianMTModel` and `MarianTokenizer` load.

    Args:
        directory: With config.json, model.safetensors or pytorch_model.bin,
            source.spm, target.spm and vocab.json.
        values: A preset for what MarianMT does not say: training, batches.
        locales: Of source and target; empty ones are read from tokenizer_config.json.
        overridden: Keys of `values` that a user has set. Locales, the longest
            length and the search win over the directory's.

    Raises:
        FileNotFoundError: A file is missing.
        ValueError: A file is damaged, or our model cannot be of this kind; names the
            file, the value and the rule.
        ImportError: A package that reads the weights is not installed.
    """
    config_path = directory / "config.json"
    generation_path = directory / "generation_config.json"
    tokenizer_path = directory / "tokenizer_config.json"
    marian_config = marian_settings.resolve_aliases(
        read_json(config_path), path=config_path
    )
    generation = read_json(generation_path) if generation_path.exists() else None
    tokenizer = read_json(tokenizer_path, missing={})
    for key in overridden:
        if key in config.SETTINGS and config.SETTINGS[key].imported:
            raise ValueError(
                f"--config.{key} cannot be set, because it comes from {directory}: "
                "leave it out"
            )
    marian_settings.check_importable(marian_config, tokenizer, path=config_path)
    for side, locale in zip(types.SIDES, locales, strict=True):
        name = f"--{side}_locale"
        if not locale and f"data.{side}_locale" in overridden:
            name, locale = f"config.data.{name[2:]}", values.data[name[2:]]
        values.data[f"{side}_locale"] = _locale(
            side, locale, name=name, tokenizer=tokenizer, path=tokenizer_path
        )
    is_shared = marian_settings.shares_embeddings(marian_config)
    tensors = marian_weights.read_tensors(directory, is_shared=is_shared)
    embeddings = (
        ("embedding",) if is_shared else ("source_embedding", "target_embedding")
    )
    # If the key is missing, the target's file decides.
    is_separate = not is_shared and tokenizer.get(
        "separate_vocabs", (directory / "target_vocab.json").exists()
    )
    orders, sides = {}, []
    for embedding in embeddings:
        rows = len(tensors[marian_weights.TABLES[embedding][0]])
        is_source = embedding == "source_embedding"
        has_target_list = is_separate and not is_source
        spellings = read_spellings(
            directory,
            rows,
            name="target_vocab.json" if has_target_list else "vocab.json",
        )
        order = (
            _order_source_ids(spellings)
            if is_source
            else _order_ids(marian_config, spellings, path=config_path)
        )
        orders[embedding] = order
        sides.append(_name_ids(spellings, order=order))
    vocabulary = _read_vocabulary(directory, sides)
    values.model.update(marian_settings.import_model(marian_config))
    values.data.vocab_size = vocabulary.source.size
    if not is_shared:
        values.data.vocabulary_sharing = "separate"
        values.data.target_vocab_size = vocabulary.target.size
    values.data.subword_model = "unigram"
    length = tokenizer.get("model_max_length", marian_settings.MAX_LENGTH)
    is_possible = (
        type(length) is int and 2 <= length <= values.data.source_tokens_per_batch
    )
    if is_possible and "data.max_length" not in overridden:
        values.data.max_length = length
    search, notes = marian_settings.import_search(
        generation, marian_config, path=generation_path
    )
    if "search.sampling" in overridden and not values.search.sampling:
        search |= marian_settings.UNSAMPLED
    values.search.update(
        {key: v for key, v in search.items() if f"search.{key}" not in overridden}
    )
    try:
        settings = parsing.parse(values)
    except ValueError as error:
        raise ValueError(f"{directory}: {error}") from None
    params = marian_weights.import_params(
        tensors, settings.model, orders=orders, directory=directory
    )
    notes = [*notes, *marian_settings.unimported(marian_config)]
    return ImportedModel(settings, params, vocabulary, notes)


def save_run(model: ImportedModel, workdir: pathlib.Path) -> pathlib.Path:
    """Write a workdir: configuration, vocabulary, checkpoint; return the last's path.

    Programs take it like one that was trained here, `--init_from` among them.
    """
    record = manifest.Manifest(
        settings=manifest.recorded_settings(model.settings.data),
        text={},
        vocabulary=model.vocabulary.fingerprint,
        counts={},
    )
    with files.replacing(workdir / "data") as unfinished:
        model.vocabulary.save(unfinished)
        record.write(unfinished)
    path = average.save_average(
        workdir,
        model.checkpoint,
        settings=model.settings,
        vocabulary=model.vocabulary,
    )
    run_record.record_start(workdir, model.settings, step=0, changes=[])
    return path


def read_json(
    path: pathlib.Path, missing: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Read the object in a file; return `missing` if there is no file.

    Raises:
        FileNotFoundError: There is no file and no `missing`.
        ValueError: The file is not a JSON object.
    """
    if not path.exists():
        if missing is not None:
            return dict(missing)
        raise FileNotFoundError(
            f"{path.parent} has no {path.name}: it is not the directory of a "
            "MarianMTModel and its MarianTokenizer"
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is not a JSON object")
        return content
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def read_spellings(
    directory: pathlib.Path, rows: int, *, name: str = "vocab.json"
) -> list[str]:
    """Read how each of MarianMT's ids is spelt, from vocab.json or the target's file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It does not fit an embedding of so many rows.
    """
    path = directory / name
    spellings: dict[int, str] = {}
    for subword, token in read_json(path).items():
        if type(token) is not int or not 0 <= token < rows:
            raise ValueError(
                f"{path}: ids must be from 0 to {rows - 1}, the rows of the embedding, "
                f"got {token!r} of {subword!r}"
            )
        if token in spellings:
            raise ValueError(
                f"{path}: an id must have one spelling, got {spellings[token]!r} and "
                f"{subword!r} of {token}"
            )
        spellings[token] = subword
    if "<unk>" not in spellings.values():
        raise ValueError(f"{path} has no <unk>")
    return [spellings.get(token, f"<unused_{token}>") for token in range(rows)]


def _locale(
    side: str,
    user_locale: str,
    *,
    name: str,
    tokenizer: dict[str, Any],
    path: pathlib.Path,
) -> str:
    """Return the user's locale, or the one that the tokenizer names."""
    if user_locale:
        locales.check_language(user_locale, name=name)
        return user_locale
    remedy = (
        f"give --{side}_locale to `vaswani import-marian`, or overrides="
        f"{{'data.{side}_locale': ...}} to vaswani_jax.load"
    )
    locale = tokenizer.get(f"{side}_lang") or ""
    if not locale:
        raise ValueError(f"{path} has no {side}_lang: {remedy}")
    if not data_rules.LOCALE.fullmatch(str(locale)):
        raise ValueError(
            f"{path}: {side}_lang {locale!r} is no code of a language: {remedy}"
        )
    return str(locale)


def _order_ids(
    marian_config: dict[str, Any], spellings: list[str], *, path: pathlib.Path
) -> list[int]:
    """Return MarianMT's id of each of our ids: the marks come first.

    Most models start sentences with padding; the begin mark has a row of its own here.
    """
    keys = ("pad_token_id", "decoder_start_token_id", "eos_token_id")
    marks: list[Any] = [*map(marian_config.get, keys), spellings.index("<unk>")]
    if not all(type(t) is int and 0 <= t < len(spellings) for t in marks):
        raise ValueError(
            f"{path}: {', '.join(keys)} must be numbers below {len(spellings)}, the "
            f"rows of the embedding, got {marks[:3]}"
        )
    return [*marks, *(t for t in range(len(spellings)) if t not in marks)]


def _order_source_ids(spellings: list[str]) -> list[int]:
    """Return MarianMT's id of each of our ids in a vocabulary of the source alone.

    Its tokenizer finds the marks by their spelling, which has a space in some exports
    (see `special_tokens`). No source has a begin mark, and padding is masked, so those
    that it lacks may share a row.
    """
    tokens = {spelling.strip(" "): token for token, spelling in enumerate(spellings)}
    unknown = tokens["<unk>"]
    end = tokens.get("</s>", unknown)
    padding = tokens.get("<pad>", end)
    begin = tokens.get("<s>", tokens.get("<start>", padding))
    marks = [padding, begin, end, unknown]
    return [*marks, *(t for t in range(len(spellings)) if t not in marks)]


def _name_ids(spellings: list[str], *, order: list[int]) -> list[str]:
    names = [spellings[token] for token in order]
    if order.count(order[types.BOS_ID]) > 1:
        names[types.BOS_ID] = "<s>" if "<s>" not in spellings else "<start>"
    return names


def _read_vocabulary(directory: pathlib.Path, names: list[list[str]]) -> Vocabulary:
    """Read the segmenters; the lists of subwords are one for each embedding."""
    # Each names its file if that is missing or damaged.
    source, target = (
        Subwords.load(directory / f"{side}.spm").model for side in ("source", "target")
    )
    return Vocabulary(
        MarianSubwords(source, names[0]),
        MarianSubwords(target, names[-1]),
        is_shared=len(names) == 1,
    )
