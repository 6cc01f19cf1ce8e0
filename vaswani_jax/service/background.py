"""Run a call in a thread that does not keep the process alive."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run(call: Callable[[], Result]) -> Result:
    """Run a call in a daemon thread, and return its result.

    With `asyncio.to_thread`, the event loop could not end before the call does.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Result] = loop.create_future()

    def work() -> None:
        result, error = None, None
        try:
            result = call()
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(_finish, done, result, error)

    threading.Thread(target=work, daemon=True, name="background").start()
    return await done


def _finish(
    done: "asyncio.Future[Any]", result: Any, error: BaseException | None
) -> None:
    if done.cancelled():
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
