"""The limits of a server, set when it starts, and the errors beyond them."""

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server's requests and of its queue.

    Attributes:
        texts: Most texts of a request.
        characters: Most characters of all texts of a request together.
        beam_sizes: The beam sizes that a request may name, the default first; each is
            compiled before the server is ready.
        length_penalties: The least and the largest exponent that a request may name.
        n_best: Most translations of a text.
        seconds: Most seconds from a request's arrival to its answer.
        queue: Most sentences that wait for a model.
        wait_seconds: Most seconds that a sentence waits for others to share its batch.
    """

    texts: int = 128
    characters: int = 20_000
    beam_sizes: tuple[int, ...] = (4,)
    length_penalties: tuple[float, float] = (0.0, 2.0)
    n_best: int = 4
    seconds: float = 30.0
    queue: int = 1024
    wait_seconds: float = 0.005


@dataclasses.dataclass(frozen=True, kw_only=True)
class Search:
    """The search that a request asks for.

    Attributes:
        beam_size: W.
        n_best: How many hypotheses of a sentence are returned.
        length_penalty: alpha.
    """

    beam_size: int
    n_best: int
    length_penalty: float


class OverloadedError(Exception):
    """The queue is full: status 503.

    Attributes:
        retry_seconds: The time after which the queue probably has room.
    """

    def __init__(self, retry_seconds: float) -> None:
        """Keep the time to wait."""
        super().__init__("the queue is full")
        self.retry_seconds = retry_seconds


class TooLateError(Exception):
    """A request was not answered within `Limits.seconds`: status 504."""
