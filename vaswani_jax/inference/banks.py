"""Search for outputs that have given phrases: beams are allocated to banks.

Deviation: the paper's search is unrestricted.

A bank is the hypotheses that have equally many tokens of the phrases. It is from Post
and Vilar, 2018, "Fast Lexically Constrained Decoding with Dynamic Beam Allocation for
Neural Machine Translation".

The banks share the beam at each position, as in Hu et al., 2019, "Improved Lexically
Constrained Decoding for Translation and Monolingual Rewriting". Each bank gives its
best hypothesis first, the most complete bank first. Then each gives its second, and so
on. So the search advances to the end of all phrases, and each can stand where the model
likes it best.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt8

from vaswani_jax.core import types
from vaswani_jax.inference import extensions

# How many are considered beside the best of all.
EXTENSIONS_PER_HYPOTHESIS = 2


class PhraseRows(NamedTuple):
    """The phrases of each sentence of a batch, padded: C phrases of L tokens.

    Attributes:
        tokens: The ids of each phrase; only padding if a sentence has fewer.
        counts: How often each must be in the output; 0 if a sentence has fewer.
        are_words: True for phrases after which a new word must start.
        breaks: One bit for each id, as `np.packbits` has them, the same in each row:
            whether the token can only follow a whole word.
        joined_tokens: The ids of each phrase without the space before it; only padding
            for a phrase that needs its space; None if every phrase does.
        openers: Bits as in `breaks`: whether a phrase may follow the token without a
            space, for example after a bracket.
    """

    tokens: Any  # Int "*rows C L"
    counts: Any  # Int "*rows C"
    are_words: Any  # Bool "*rows C"
    breaks: Any  # UInt8 "*rows V/8"
    joined_tokens: Any = None  # Int "*rows C L"
    openers: Any = None  # UInt8 "*rows V/8"


class Progress(NamedTuple):
    """The parts of the phrases that each hypothesis has.

    Attributes:
        counts: How often it has each, a phrase of words only if a new word follows.
        is_pending: Whether its last tokens are the phrase, and a new word must follow.
        is_partial: For each of the A spellings of a phrase, with a space and without,
            and entry n of the last axis: whether its last n tokens begin the spelling,
            and that has more than n.
    """

    counts: Int[Array, "B W C"]
    is_pending: Bool[Array, "B W C"]
    is_partial: Bool[Array, "B W C A L"]


class _Extended(NamedTuple):
    """The parts of the phrases that extended hypotheses have.

    Attributes:
        counts: As in `Progress`.
        is_whole: Whether the last tokens are the phrase.
        num_partial: How many tokens of the phrase the last tokens are, if not all.
    """

    counts: Int[Array, "B N C"]
    is_whole: Bool[Array, "B N C"]
    num_partial: Int[Array, "B N C"]


class RequiredPhrases(NamedTuple):
    """The phrases of some sentences, for a search.

    Attributes:
        phrases: Their phrases.
        prefix_lengths: The tokens that each output must begin with: no phrase is begun
            there unless it is a part of them.
    """

    phrases: PhraseRows
    prefix_lengths: Int[Array, "B"]

    def no_counts(self, beam_size: int) -> Int[Array, "B W C"]:
        """Return the counts of W empty hypotheses of each sentence."""
        B, C = self.phrases.counts.shape
        return jnp.zeros((B, beam_size, C), jnp.int32)

    def progress(
        self, tokens: Int[Array, "B W T"], counts: Int[Array, "B W C"]
    ) -> Progress:
        """Return how much each hypothesis has of the phrases.

        Args:
            tokens: The hypotheses, then padding.
            counts: As `best_extensions` returns them.
        """
        spellings = self._spellings()[:, None]
        lengths = jnp.sum(spellings != types.PAD_ID, axis=4, keepdims=True)
        A, L = spellings.shape[3:]
        offset, num_matching = jnp.arange(L), jnp.arange(L + 1)
        # The last token, the one before, and so on.
        num_tokens = jnp.sum(tokens != types.PAD_ID, axis=2)
        last = num_tokens[..., None] - 1 - num_matching
        recent = jnp.take_along_axis(tokens, jnp.maximum(last, 0), axis=2)
        recent = jnp.where(last >= 0, recent, types.PAD_ID)
        # Of the first n tokens of a phrase, the one at i is n - 1 - i from their end.
        from_end = num_matching[:, None] - 1 - offset
        in_order = recent[:, :, None, None, jnp.maximum(from_end, 0)]
        matches = (in_order == spellings[:, :, :, :, None]) | (from_end < 0)
        # The token before the last n.
        is_opened = self._are_openers(recent)[:, :, None, None]
        is_in_place = is_opened | (jnp.arange(A)[:, None] == 0)
        matches = jnp.all(matches, axis=5) & is_in_place
        is_whole = matches & (num_matching == lengths) & (lengths > 0)
        are_words = self.phrases.are_words[:, None]
        return Progress(
            counts=counts,
            is_pending=jnp.any(is_whole, axis=(3, 4)) & are_words,
            is_partial=(matches & (num_matching < lengths))[..., :L],
        )

    def _extend(
        self, origin: Int[Array, "B N"], token: Int[Array, "B N"], progress: Progress
    ) -> _Extended:
        """Return what hypotheses with one token more have of the phrases.

        Args:
            origin: The hypothesis that is extended.
            token: The token that it gets.
            progress: Of the hypotheses.
        """
        phrases, spellings = self.phrases, self._spellings()[:, None]
        lengths = jnp.sum(spellings != types.PAD_ID, axis=4, keepdims=True)
        counts, is_pending, is_partial = (
            jnp.take_along_axis(
                leaf, origin.reshape(*origin.shape, *[1] * (leaf.ndim - 2)), axis=1
            )
            for leaf in progress
        )
        goes_on = is_partial & (spellings == token[:, :, None, None, None])
        num_tokens = jnp.arange(1, goes_on.shape[4] + 1)
        is_whole = jnp.any(goes_on & (num_tokens == lengths), axis=(3, 4))
        # A spelling without a space counts for at most as many as the one with it.
        num_partial = jnp.minimum(
            num_tokens, self._lengths()[:, None, :, None, None] - 1
        )
        num_partial = jnp.where(goes_on & (num_tokens < lengths), num_partial, 0)
        breaks = self._are_breaks(token)[:, :, None]
        are_words = phrases.are_words[:, None]
        return _Extended(
            counts=counts + (is_pending & breaks) + (is_whole & ~are_words),
            is_whole=is_whole,
            num_partial=jnp.max(num_partial, axis=(3, 4)),
        )

    def _has_all(self, progress: Progress) -> Bool[Array, "B W"]:
        """Return True for hypotheses that have all phrases if they end now."""
        counts = progress.counts + progress.is_pending
        return jnp.all(counts >= self.phrases.counts[:, None], axis=2)

    def prefer_complete(
        self,
        tokens: Int[Array, "B W T"],
        log_probs: Float[Array, "B W"],
        counts: Int[Array, "B W C"],
    ) -> tuple[Int[Array, "B W T"], Float[Array, "B W"]]:
        """Return the hypotheses that have all phrases, best first, then empty slots.

        If none has, all are returned.
        """
        has_all = self._has_all(self.progress(tokens, counts))
        is_any_complete = jnp.any(
            has_all & (log_probs > -jnp.inf), axis=1, keepdims=True
        )
        log_probs = jnp.where(has_all | ~is_any_complete, log_probs, -jnp.inf)
        log_probs, order = jax.lax.top_k(log_probs, log_probs.shape[1])
        return jnp.take_along_axis(tokens, order[:, :, None], axis=1), log_probs

    def best_extensions(
        self,
        logits: Float[Array, "B W V"],
        offset: Float[Array, "B W 1"],
        *,
        allowed: Float[Array, "#B #W V"] | None,
        progress: Progress,
        count: int,
        limits: extensions.Limits,
    ) -> tuple[extensions.Extensions, Int[Array, "B N C"]]:
        """Return extensions in the order in which the banks share the beam.

        They are the best of all, the best of each hypothesis, and those that continue a
        phrase. A sentence without phrases has one bank, hence the best of all as they
        are. How often each has each phrase is returned beside them.

        Args:
            logits: Of the tokens; what continues a phrase is taken from here.
            offset: Added to a logit, it gives the log-probability of the hypothesis.
            allowed: 0 or -inf for each other token that may follow; None if all may.
            progress: Of the hypotheses.
            count: How many extensions to return.
            limits: Of the length.
        """
        V = logits.shape[2]
        lacks_phrase = ~self._has_all(progress)[:, :, None]
        is_forbidden = lacks_phrase & (jnp.arange(V) == types.EOS_ID)
        allowed_logits = logits if allowed is None else logits + allowed
        allowed_logits = jnp.where(is_forbidden, -jnp.inf, allowed_logits)
        parts = (
            extensions.best_extensions(
                allowed_logits, offset, count=count, limits=limits
            ),
            self._best_of_each(
                logits, allowed_logits, offset, progress=progress, limits=limits
            ),
            self._continue_phrases(logits, offset, progress=progress, limits=limits),
        )
        log_probs, origin, token = (
            jnp.concatenate(leaves, axis=1) for leaves in zip(*parts, strict=True)
        )
        # Of equal extensions the first stays.
        code = origin * V + token
        is_equal = code[:, :, None] == code[:, None, :]
        is_possible = log_probs > -jnp.inf
        is_repeated = jnp.tril(is_equal, k=-1) & is_possible[:, None, :]
        log_probs = jnp.where(jnp.any(is_repeated, axis=2), -jnp.inf, log_probs)
        extended = self._extend(origin, token, progress)
        order = _allocate(self._bank(extended), log_probs)[:, :count]
        best = extensions.Extensions(
            *(
                jnp.take_along_axis(array, order, axis=1)
                for array in (log_probs, origin, token)
            )
        )
        return best, jnp.take_along_axis(extended.counts, order[:, :, None], axis=1)

    def _best_of_each(
        self,
        logits: Float[Array, "B W V"],
        allowed_logits: Float[Array, "B W V"],
        offset: Float[Array, "B W 1"],
        *,
        progress: Progress,
        limits: extensions.Limits,
    ) -> extensions.Extensions:
        """Return the best extensions of each hypothesis, so that none is lost.

        One that has just written a phrase starts a new word.
        """
        B, W, V = logits.shape
        is_lacking = progress.counts < self.phrases.counts[:, None]
        must_break = jnp.any(progress.is_pending & is_lacking, axis=2)[:, :, None]
        is_break = self._is_break(V)[:, None, :]
        breaking = jnp.where(is_break, allowed_logits, -jnp.inf)
        # If other rules forbid every new word, the phrase wins.
        is_stuck = jnp.all(breaking == -jnp.inf, axis=2, keepdims=True)
        is_stuck &= self._is_free(limits)[:, None, None]
        may_break = is_stuck & is_break & (jnp.arange(V) != types.EOS_ID)
        breaking = jnp.where(may_break, logits, breaking)
        allowed_logits = jnp.where(must_break, breaking, allowed_logits)
        of_each = extensions.best_extensions(
            allowed_logits.reshape(B * W, 1, V),
            offset.reshape(B * W, 1, 1),
            count=EXTENSIONS_PER_HYPOTHESIS,
            limits=limits,
        )
        origin = jnp.arange(W, dtype=jnp.int32).repeat(EXTENSIONS_PER_HYPOTHESIS)
        return extensions.Extensions(
            of_each.log_probs.reshape(B, -1),
            jnp.broadcast_to(origin, (B, W * EXTENSIONS_PER_HYPOTHESIS)),
            of_each.token.reshape(B, -1),
        )

    def _continue_phrases(
        self,
        logits: Float[Array, "B W V"],
        offset: Float[Array, "B W 1"],
        *,
        progress: Progress,
        limits: extensions.Limits,
    ) -> extensions.Extensions:
        """Return the hypotheses with the next token of each phrase that they lack.

        Both spellings are tried; the one without a space only after an opener.
        """
        B, W, C, A, L = progress.is_partial.shape
        # As much is begun as possible.
        num_partial = jnp.max(jnp.where(progress.is_partial, jnp.arange(L), 0), axis=4)
        token = jnp.take_along_axis(
            self._spellings()[:, None], num_partial[..., None], axis=4
        ).squeeze(4)
        is_lacking = (
            progress.counts + progress.is_pending < self.phrases.counts[:, None]
        )
        is_free = self._is_free(limits)[:, None, None]
        is_possible = (is_lacking & is_free)[..., None]
        is_possible &= jnp.any(progress.is_partial, axis=4)
        token = token.reshape(B, W, C * A).astype(jnp.int32)
        log_probs = jnp.take_along_axis(logits, token, axis=2) + offset
        log_probs = jnp.where(is_possible.reshape(token.shape), log_probs, -jnp.inf)
        origin = jnp.arange(W, dtype=jnp.int32).repeat(C * A)
        return extensions.Extensions(
            log_probs.reshape(B, -1),
            jnp.broadcast_to(origin, (B, W * C * A)),
            token.reshape(B, -1),
        )

    def _bank(self, extended: _Extended) -> Int[Array, "B N"]:
        """Return the number of tokens of phrases in each extended hypothesis.

        A phrase of words counts one token more if a new word follows it. Of the phrases
        that are incomplete, the one with the most tokens counts.
        """
        counts, is_whole, num_partial = extended
        lengths = self._lengths()[:, None]
        are_words = self.phrases.are_words[:, None]
        num_required = self.phrases.counts[:, None]
        num_complete = jnp.minimum(counts + (is_whole & are_words), num_required)
        num_followed = jnp.where(are_words, jnp.minimum(counts, num_required), 0)
        num_partial = jnp.where(num_complete < num_required, num_partial, 0)
        in_phrases = jnp.sum(num_complete * lengths + num_followed, axis=2)
        return in_phrases + jnp.max(num_partial, axis=2)

    def _is_free(self, limits: extensions.Limits) -> Bool[Array, "B"]:
        """Return True for the sentences whose prefix is written."""
        return limits.position >= self.prefix_lengths

    def _lengths(self) -> Int[Array, "B C"]:
        return jnp.sum(self.phrases.tokens != types.PAD_ID, axis=2)

    def _spellings(self) -> Int[Array, "B C A L"]:
        """Return the ids of each phrase with a space before it, then without."""
        spellings = [self.phrases.tokens]
        if self.phrases.joined_tokens is not None:
            spellings.append(self.phrases.joined_tokens)
        return jnp.stack(spellings, axis=2)

    def _is_break(self, num_logits: int) -> Bool[Array, "B V"]:
        """Return `breaks` for each logit; some accelerators have more than ids."""
        bits = jnp.unpackbits(self.phrases.breaks, axis=1)[:, :num_logits]
        missing = num_logits - bits.shape[1]
        return jnp.pad(bits, [(0, 0), (0, missing)]).astype(bool)

    def _are_breaks(self, tokens: Int[Array, "B *N"]) -> Bool[Array, "B *N"]:
        """Return `breaks` of some tokens of each sentence."""
        return _bits_of(tokens, self.phrases.breaks)

    def _are_openers(self, tokens: Int[Array, "B *N"]) -> Bool[Array, "B *N"]:
        """Return `openers` of some tokens of each sentence."""
        if self.phrases.openers is None:
            return jnp.zeros(tokens.shape, bool)
        return _bits_of(tokens, self.phrases.openers)


def _bits_of(
    tokens: Int[Array, "B *N"], packed: UInt8[Array, "B _"]
) -> Bool[Array, "B *N"]:
    """Return the bits of some tokens of each sentence."""
    bits = jnp.unpackbits(packed, axis=1)
    flat = tokens.reshape(tokens.shape[0], -1)
    return jnp.take_along_axis(bits, flat, axis=1).reshape(tokens.shape).astype(bool)


def _allocate(
    bank: Int[Array, "B N"], log_probs: Float[Array, "B N"]
) -> Int[Array, "B N"]:
    """Return the order of extensions: by their rank within their bank, then by bank.

    Impossible extensions come last.
    """
    index = jnp.broadcast_to(jnp.arange(bank.shape[1]), bank.shape)
    by_bank, _, order = jax.lax.sort((-bank, -log_probs, index), num_keys=2)
    is_first = by_bank != jnp.roll(by_bank, 1, axis=1)
    first = jax.lax.cummax(jnp.where(is_first, index, 0), axis=1)
    rank = index - first
    is_impossible = jnp.take_along_axis(log_probs, order, axis=1) == -jnp.inf
    rank = jnp.where(is_impossible, bank.shape[1], rank)
    _, _, order = jax.lax.sort((rank, by_bank, order), num_keys=2)
    return order
