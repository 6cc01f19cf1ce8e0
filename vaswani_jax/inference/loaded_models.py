"""Score and save loaded models, and name their sizes and checkpoints."""

import functools
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from vaswani_jax.checkpoints import bundle
from vaswani_jax.core import languages, parallel, types
from vaswani_jax.core.config import Config, ModelConfig
from vaswani_jax.data.tokenizer import Tokenizer
from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference import arguments, scoring, trees
from vaswani_jax.inference.ensemble import Member
from vaswani_jax.inference.results import PairScore
from vaswani_jax.model import cost

if TYPE_CHECKING:
    import vaswani_jax.model.transformer


class LoadedModels:
    """One model, or an ensemble, that scores and can be saved.

    Attributes:
        config: All settings of the run, with the overrides of `load`.
        vocabulary: The `Vocabulary`: text to ids and back.
        members: The models, each a `Member`; usually one.
    """

    def __init__(
        self,
        config: Config,
        vocabulary: Vocabulary,
        *,
        members: Sequence[Member],
    ) -> None:
        """Keep the parts; nothing is computed and no device touched.

        Args:
            config: Its `search` limits the lengths of lines.
            vocabulary: The subwords of every member.
            members: The models, whose probabilities are averaged.
        """
        self.config = config
        self.vocabulary = vocabulary
        self.members = tuple(members)

    @property
    def member(self) -> Member:
        """The model of a translator that is no ensemble.

        Raises:
            ValueError: The translator is an ensemble.
        """
        if len(self.members) > 1:
            raise ValueError(
                f"an ensemble of {len(self.members)} models has no single model, "
                "module or parameters: use members"
            )
        return self.members[0]

    @property
    def module(self) -> "vaswani_jax.model.transformer.Transformer":
        """The model as a flax module: `module.apply({"params": params}, ...)`."""
        from vaswani_jax.model.transformer import Transformer

        return Transformer(self.member.model, self.vocabulary.size)

    @property
    def params(self) -> Any:
        """The model's parameters, a nested dictionary of NumPy arrays."""
        return self.member.params

    @functools.cached_property
    def num_parameters(self) -> int:
        """The number of parameters of all members together."""
        return sum(
            cost.count_parameters(member.model, vocab_size=self.vocabulary.size)
            for member in self.members
        )

    @property
    def checkpoint_name(self) -> str:
        """The name of the checkpoint, as `--checkpoint` takes it."""
        return ",".join(bundle.name_of(member.checkpoint) for member in self.members)

    @functools.cached_property
    def replicated_params(self) -> list[Any]:
        """The parameters of each model on every device, placed there at first use."""
        return [parallel.replicate(member.params) for member in self.members]

    def save(
        self, path: str | os.PathLike[str], *, dtype: str = "float32"
    ) -> pathlib.Path:
        """Write the model, its settings and its vocabulary into FILE.safetensors.

        `vaswani_jax.load` and the programs that load a model take it in place of a run.

        >>> vaswani_jax.load("runs/demo").save("demo.safetensors")  # doctest: +SKIP

        Args:
            path: The file; one of this name is replaced.
            dtype: Of the parameters in the file, "float32" or "bfloat16", half as
                large, which rounds them. The model computes in `config.model.dtype`.

        Returns:
            The path.

        Raises:
            ValueError: The translator is an ensemble, the name has another ending, or
                there is no such type.
            OSError: The file cannot be written. No part of it remains.
        """
        path = pathlib.Path(path)
        parts = bundle.Bundle(self.config, self.vocabulary, self.member.checkpoint)
        parts.save(path, dtype=dtype)
        return path

    def score(
        self,
        sources: Iterable[str],
        targets: Iterable[str],
        *,
        first_line: int = 1,
    ) -> list[PairScore]:
        """Return the probabilities of given translations.

        Args:
            sources: Source lines. One string alone is an error.
            targets: A translation of each.
            first_line: The number of the first line in error messages.

        Raises:
            TypeError: One argument is a string, or not all are strings.
            ValueError: The numbers of lines differ; a line is too long for the search
                or lacks its tag; a target should be a tree over the words of its
                source and is none; or the parameters are not finite numbers.
        """
        sources = arguments.check_lines(sources, "sources")
        targets = arguments.check_lines(targets, "targets")
        arguments.check_equal_numbers(sources=sources, targets=targets)
        if self.vocabulary.is_trees:
            trees.check_trees(sources, targets, first_line=first_line)
        pairs = self._encode(sources, targets, first_line=first_line)
        scored_pairs = self.score_ids(pairs)
        scores = []
        for number, ((_, ids), scored_pair) in enumerate(
            zip(pairs, scored_pairs, strict=True), start=first_line
        ):
            log_probs = scored_pair.log_probs
            check_finite(log_probs, line=number)
            scores.append(
                PairScore(
                    log_prob=float(np.sum(log_probs, dtype=np.float64)),
                    tokens=spell(self.vocabulary.target, ids),
                    log_probs=tuple(float(log_prob) for log_prob in log_probs),
                )
            )
        return scores

    def attended_layers(self) -> dict[str, range]:
        """Return all layers of each kind of attention, as `score_ids` takes them.

        Raises:
            ValueError: The models of an ensemble differ in them, or in their heads.
        """
        sizes = {
            (model.encoder_layers, model.decoder_layers, model.num_heads)
            for model in self._models
        }
        if len(sizes) > 1:
            raise ValueError(
                "attention needs models with equal numbers of encoder layers, decoder "
                f"layers and heads, got {sorted(sizes)}"
            )
        model = self._models[0]
        return {kind: range(scoring.depth(model, kind)) for kind in scoring.KINDS}

    def score_ids(
        self,
        pairs: Sequence[scoring.Pair],
        *,
        layers: Mapping[str, Sequence[int]] | None = None,
    ) -> list[scoring.Scored]:
        """Return the scores and attention of pairs of ids; see `scoring.score_pairs`.

        Args:
            pairs: Ids of each source without, and of each output with, the end mark.
            layers: The layers whose attention is kept, the lowest being 0, by their
                kind, of `scoring.KINDS`.
        """
        return scoring.score_pairs(
            pairs,
            models=self._models,
            params=self.replicated_params,
            vocab_size=self.vocabulary.size,
            layers=layers,
        )

    @property
    def _models(self) -> list[ModelConfig]:
        return [member.model for member in self.members]

    def _encode(
        self, sources: Sequence[str], targets: Sequence[str], *, first_line: int
    ) -> list[scoring.Pair]:
        """Return the ids of each pair, the target's with the end mark."""
        languages.check_tags(sources, self.config.data, first_line=first_line)
        source_ids = self.vocabulary.encode(sources)
        target_ids = self.vocabulary.encode(targets, target=True)
        arguments.check_lengths(
            source_ids, target_ids, search=self.config.search, first_line=first_line
        )
        return [
            (source, [*target, types.EOS_ID])
            for source, target in zip(source_ids, target_ids, strict=True)
        ]


def check_finite(log_probs: Float[np.ndarray, "T"], *, line: int) -> None:
    """Refuse log-probabilities that are not finite.

    Args:
        log_probs: Those of a line's subwords.
        line: The line's number, for the error.

    Raises:
        ValueError: One is infinite or nan.
    """
    if not np.isfinite(log_probs).all():
        raise ValueError(
            f"line {line} has no probability: the parameters are not finite numbers; "
            "name another checkpoint"
        )


def spell(subwords: Tokenizer, ids: Sequence[int]) -> tuple[str, ...]:
    """Return ids as their subwords."""
    return tuple(subwords.subword(token) for token in ids)
