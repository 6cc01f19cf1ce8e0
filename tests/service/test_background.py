"""A call in the background gives its result, and no end waits for it."""

import asyncio
import threading

import pytest

from vaswani_jax.service import background


def test_run_returns_the_result_or_raises_the_error_of_its_call() -> None:
    def fail() -> None:
        raise KeyError("a")

    assert asyncio.run(background.run(lambda: 3)) == 3
    with pytest.raises(KeyError, match="a"):
        asyncio.run(background.run(fail))


def test_the_end_of_the_loop_does_not_wait_for_a_call() -> None:
    start, gate, end = (threading.Event() for _ in range(3))

    def block() -> None:
        start.set()
        gate.wait(10)
        end.set()

    async def main() -> None:
        task = asyncio.create_task(background.run(block))
        await asyncio.to_thread(start.wait, 10)
        assert not task.done()

    asyncio.run(main())
    assert not end.is_set()
    gate.set()
    assert end.wait(10)
