"""Show recorded beam searches as trees: what they considered, and why they ended."""

from collections.abc import Sequence

from vaswani_jax.data.vocabulary import Vocabulary
from vaswani_jax.inference.search_record import Extension, SearchRecord
from vaswani_jax.inference.translator import Translator
from vaswani_jax.pages import contents


def search_trees(
    translator: Translator, lines: Sequence[str]
) -> list[contents.Search | None]:
    """Return the search for the best translation of each line.

    It is None for a line that is empty or is translated in pieces, and for all lines if
    the settings draw outputs at random.

    Args:
        translator: The models, and how they search.
        lines: Source lines.

    Raises:
        ValueError: A line lacks the tag of one of several target languages.
    """
    if translator.config.search.sampling:
        return [None] * len(lines)
    return [
        to_search(records[0], translator.vocabulary) if len(records) == 1 else None
        for records in translator.record_search(lines)
    ]


def to_search(record: SearchRecord, vocabulary: Vocabulary) -> contents.Search:
    """Return what a page shows of a recorded search."""
    subwords = vocabulary.target

    def candidate(extension: Extension) -> contents.Candidate:
        fate = "live" if extension.live is not None else "dropped"
        return contents.Candidate(
            token=subwords.subword(extension.token),
            parent=extension.parent,
            log_prob=extension.log_prob,
            score=extension.score,
            fate="finished" if extension.is_kept else fate,
            live=extension.live,
        )

    return contents.Search(
        beam_size=record.options.beam_size,
        alpha=record.options.alpha,
        penalty_form=record.options.penalty_form,
        positions=tuple(
            tuple(map(candidate, extensions)) for extensions in record.positions
        ),
        finished=tuple(
            contents.Finished(
                tokens=tuple(subwords.subword(token) for token in hypothesis.ids),
                text=vocabulary.decode(hypothesis.ids),
                log_prob=hypothesis.log_prob,
                penalty=hypothesis.penalty,
                score=hypothesis.score,
                candidates=hypothesis.path,
            )
            for hypothesis in record.hypotheses
        ),
        stopped=_reason(record),
    )


def _reason(record: SearchRecord) -> str:
    """Return why a search ended, a sentence without a full stop."""
    if not record.is_settled:
        return f"the longest length was reached: {record.longest} tokens"
    if record.live_log_prob == float("-inf"):
        return "no hypothesis is live: each extension ended, or is forbidden"
    rank = record.options.n_best
    score = record.hypotheses[rank - 1].score
    rank_text = "best finished one" if rank == 1 else f"finished one of rank {rank}"
    # A log-probability only falls, and no length penalty is larger than the longest's.
    return (
        f"no live hypothesis can overtake the {rank_text}, with the score {score:.4f}: "
        f"the likeliest has log P = {record.live_log_prob:.4f}; divided by the largest "
        f"penalty, {record.longest_penalty:.4f} for {record.longest} tokens, that is "
        f"{record.reachable:.4f}; log P only falls"
    )
