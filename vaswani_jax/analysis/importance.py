"""Measure how much a head matters: the loss of a text without it (Michel et al., 2019).

A head is switched off by zeros in its rows of W^O (section 3.2.2): the concatenation
has nothing of it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vaswani_jax.core import config, parallel, types
from vaswani_jax.inference import scoring


def loss(
    pairs: Sequence[scoring.Pair],
    *,
    model: config.ModelConfig,
    params: Any,
    vocab_size: types.VocabSize,
) -> float:
    """Return the cross-entropy of outputs in nats a token, without label smoothing.

    Args:
        pairs: Source ids without, and outputs with, an end mark.
        model: The architecture.
        params: The parameters, replicated.
        vocab_size: V.
    """
    scores = scoring.iterate_scores(
        pairs, models=(model,), params=(params,), vocab_size=vocab_size
    )
    total = count = 0.0
    for _, score_of_line in scores:
        total -= np.sum(score_of_line.log_probs, dtype=np.float64)
        count += len(score_of_line.log_probs)
    return total / max(1, count)


def switch_off(params: Any, *, kind: str, layer: int, head: int) -> Any:
    """Return parameters without one head, on the same devices.

    Args:
        params: A model's parameters; they stay as they are.
        kind: "encoder", "decoder" or "memory".
        layer: From 0, the lowest.
        head: From 0.
    """
    stack, module = scoring.KINDS[kind]
    path = (stack, f"layers_{layer}", module, "output", "kernel")
    return _replace(params, path, head=head)


def _replace(tree: Any, path: Sequence[str], *, head: int) -> Any:
    if not path:
        kernel = np.array(parallel.gather(tree))
        kernel[head] = 0
        return parallel.replicate(kernel)
    name, *inner_path = path
    return {**tree, name: _replace(tree[name], inner_path, head=head)}


def importances(
    pairs: Sequence[scoring.Pair],
    *,
    model: config.ModelConfig,
    params: Any,
    vocab_size: types.VocabSize,
    full_loss: float,
) -> Iterator[float]:
    """Yield the loss without each head, minus the loss: by kind, layer and head.

    Args:
        pairs: As for `loss`.
        model: The architecture.
        params: The parameters, replicated.
        vocab_size: V.
        full_loss: The loss with all heads.
    """
    for kind in scoring.KINDS:
        for layer in range(scoring.depth(model, kind)):
            for head in range(model.num_heads):
                params_without_head = switch_off(
                    params, kind=kind, layer=layer, head=head
                )
                loss_without_head = loss(
                    pairs,
                    model=model,
                    params=params_without_head,
                    vocab_size=vocab_size,
                )
                yield loss_without_head - full_loss
