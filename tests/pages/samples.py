"""A page whose every number is known, made without a model."""

import numpy as np

from vaswani_jax.inference.results import Attention
from vaswani_jax.pages import contents

SOURCE = ("▁The", "▁law", "▁will", "▁never", "▁be", "▁per", "fect", ".", "</s>")
SOURCE_WORDS = (0, 1, 2, 3, 4, 5, 5, 5, -1)
TARGET = ("▁Das", "▁Gesetz", "▁wird", "▁nie", "▁voll", "kommen", ".", "</s>")
TARGET_WORDS = (0, 1, 2, 3, 4, 4, 4, -1)


def weights(rng, *, layers, heads, queries, keys, is_causal=False):
    """Return random rows that sum to 1, `[L, H, Q, K]`."""
    logits = 3 * rng.standard_normal((layers, heads, queries, keys))
    if is_causal:
        logits = np.where(np.tri(queries, keys, dtype=bool), logits, -np.inf)
    exponentials = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return (exponentials / exponentials.sum(axis=-1, keepdims=True)).astype(np.float32)


def attention(rng, *, source=SOURCE, target=TARGET, layers=6, heads=8):
    """Return the weights of a sentence and its translation."""
    S, T = len(source), len(target)
    sizes = {"layers": layers, "heads": heads}
    return Attention(
        source=source,
        target_in=("<s>", *target[:-1]),
        target_out=target,
        encoder=weights(rng, **sizes, queries=S, keys=S),
        decoder=weights(rng, **sizes, queries=T, keys=T, is_causal=True),
        memory=weights(rng, **sizes, queries=T, keys=S),
    )


def search():
    """Return a search of beam 2 over two positions, with penalty 1."""

    def candidate(token, parent, log_prob, fate, live=None):
        return contents.Candidate(token, parent, log_prob, log_prob, fate, live)

    return contents.Search(
        beam_size=2,
        alpha=0.0,
        penalty_form="paper",
        positions=(
            (
                candidate("▁a", 0, -0.1, "live", 0),
                candidate("▁b", 0, -2.5, "live", 1),
                candidate("</s>", 0, -4.0, "dropped"),
            ),
            (
                candidate("</s>", 0, -0.2, "finished"),
                candidate("</s>", 1, -2.6, "finished"),
                candidate("▁a", 0, -3.0, "live", 0),
                candidate("▁b", 1, -4.5, "live", 1),
            ),
        ),
        finished=(
            contents.Finished(("▁a", "</s>"), "a", -0.2, 1.0, -0.2, (0, 0)),
            contents.Finished(("▁b", "</s>"), "b", -2.6, 1.0, -2.6, (1, 1)),
        ),
        stopped="no live hypothesis can overtake the best finished one",
    )


def view(rng, **changes):
    """Return a translation with its attention."""
    weights_of_view = attention(rng, **changes)
    T = len(weights_of_view.target_out)
    return contents.View(
        text="Das Gesetz wird nie vollkommen.",
        attention=weights_of_view,
        target_words=TARGET_WORDS,
        log_probs=tuple(float(x) for x in -rng.random(T)),
        search=search(),
    )


def page(*, seed=0, num_models=1, num_sentences=1):
    """Return a page; equal seeds give equal pages."""
    rng = np.random.default_rng(seed)
    steps = [1000 * (n + 1) for n in range(num_models)]
    return contents.Page(
        title="runs/sample",
        facts={"model": "6 + 6 layers, 8 heads", "checkpoint": "averaged"},
        command="vaswani page runs/sample",
        source_language="en",
        target_language="de",
        models=tuple(contents.Model(str(step), step) for step in steps),
        sentences=tuple(
            contents.Sentence(
                line=n + 1,
                text="The law will never be perfect.",
                source_words=SOURCE_WORDS,
                views=tuple(view(rng) for _ in steps),
            )
            for n in range(num_sentences)
        ),
        heads=heads(rng),
    )


def heads(rng, *, layers=6, num_heads=8):
    """Return what every head does: the first is positional, others nothing clear."""
    return contents.Heads(
        text="valid",
        num_lines=500,
        loss=1.25,
        descriptions={"previous": "share of tokens that look at the one before them"},
        thresholds={"previous": "“positional: previous”: at least 0.90."},
        heads=tuple(
            contents.Head(
                kind=kind,
                layer=layer,
                head=head,
                measures={"previous": (float(rng.random()), 0.1)},
                roles=("positional: previous",) if layer == head == 1 else (),
                importance=float(rng.random()) / 100,
            )
            for kind in contents.KINDS
            for layer in range(1, layers + 1)
            for head in range(1, num_heads + 1)
        ),
    )
