"""Compute several small programs at a time, one on each core of a CPU."""

import collections
import concurrent.futures
import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, cast

import jax

from vaswani_jax.core import parallel, processes

Result = TypeVar("Result")


def small_programs_at_a_time() -> int:
    """Return how many small programs the devices compute best at a time.

    A CPU divides a small program badly: each of its cores computes one. Virtual devices
    share the cores already.
    """
    if (
        not parallel.on_cpu()
        or parallel.num_devices() > 1
        or processes.num_processes() > 1
    ):
        return 1
    return os.cpu_count() or 1


def compute(
    dispatch: Callable[[Any], Result], batches: Iterable[Any], *, limit: int
) -> Iterator[Result]:
    """Yield the results of a program for batches, in order.

    Args:
        dispatch: Calls the program, from several threads at a time.
        batches: Its arguments.
        limit: The most batches that are computed at a time.
    """
    if limit == 1:
        yield from map(dispatch, batches)
        return

    def compute_one(batch: Any) -> Result:
        # JAX computes one after the other what one thread dispatches to a CPU.
        return cast(Result, jax.block_until_ready(dispatch(batch)))

    unread = iter(batches)
    executor = concurrent.futures.ThreadPoolExecutor(limit)

    def start(count: int) -> Iterator[concurrent.futures.Future[Result]]:
        for batch in itertools.islice(unread, count):
            yield executor.submit(compute_one, batch)

    try:
        # One more waits, so that no core does while a result is read.
        results = collections.deque(start(limit + 1))
        while results:
            yield results.popleft().result()
            results.extend(start(1))
    finally:
        executor.shutdown(cancel_futures=True)
