"""Write the page of one sentence, one page at a time."""

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import math
import threading
import time

from vaswani_jax.pages import build, html
from vaswani_jax.service.limits import OverloadedError, TooLateError
from vaswani_jax.service.models import ServedModel

# A page takes seconds, and its search shares no batch with others.
MAX_WAITING = 4


@dataclasses.dataclass(frozen=True)
class WrittenPage:
    """A page and the policy to send with it.

    Attributes:
        text: The HTML, with its script and its style.
        policy: The content security policy, which allows these alone.
    """

    text: str
    policy: str


class PageWriter:
    """Writes pages in a thread of its own."""

    def __init__(self) -> None:
        """Begin without a thread, which the first page starts."""
        self._executor = concurrent.futures.ThreadPoolExecutor(1, "page")
        self._slots = threading.BoundedSemaphore(MAX_WAITING)

    async def write(
        self, served: ServedModel, line: str, *, target: str | None, deadline: float
    ) -> WrittenPage:
        """Return the page of one line.

        Args:
            served: The model.
            line: The line to translate, with the tag of its direction.
            target: The translation to show; None for the best found.
            deadline: When it is too late, in seconds of `time.monotonic()`.

        Raises:
            OverloadedError: Too many pages wait.
            TooLateError: The page was not written before the deadline.
            ValueError: As `build.make_page`.
        """
        if not self._slots.acquire(blocking=False):
            raise OverloadedError(5.0)
        future = self._executor.submit(_write, served, line, target, deadline)
        future.add_done_callback(lambda done: self._slots.release())
        try:
            async with asyncio.timeout(deadline - time.monotonic()):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise TooLateError from None


def prepare(served: ServedModel) -> None:
    """Write a short page, so that the first request waits for few programs.

    The search that a page shows is compiled for each padded length of sentences. The
    first request of a length waits for it: to compile all would delay every start.
    """
    line = f"{served.directions[0].tag}."
    with contextlib.suppress(ValueError):  # Models that differ have no page.
        _write(served, line, None, math.inf)


def _write(
    served: ServedModel, line: str, target: str | None, deadline: float
) -> WrittenPage:
    if time.monotonic() >= deadline:
        raise TooLateError
    page = build.make_page(
        served.engine.translator,
        [line],
        targets=None if target is None else [target],
        title=served.name,
    )
    text = html.render(page)
    html.check_size(text)
    script = "\n".join(map(html.read, html.SCRIPTS))
    policy = html.content_policy(style=html.read_style("page.css"), script=script)
    return WrittenPage(text, f"{policy}; frame-ancestors 'none'")
