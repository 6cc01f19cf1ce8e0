"""Trace programs once, and compile them ahead of their first call."""

import concurrent.futures
import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import jax
import jax.export

from vaswani_jax.core import errors, kept_programs, parallel, processes

logger = logging.getLogger(__name__)


def on_one_device(
    function: Callable[..., Any], *, identity: kept_programs.Identity
) -> Callable[..., Any]:
    """Compile a function for one device; its arrays have no device axis.

    Args:
        function: It is called when it must be traced. It returns dictionaries, lists
            and tuples of arrays.
        identity: As for `parallel.over_rows`.
    """
    traced = jax.jit(function)
    if not parallel.can_keep_programs():
        return traced

    def program(*arguments: Any) -> Any:
        shapes = kept_programs.shapes(arguments)
        try:
            exported = kept_programs.load_or_export(
                identity,
                arguments=shapes,
                devices=f"one of {parallel.describe()}",
                export=lambda: jax.export.export(traced)(*shapes),
            )
        except kept_programs.NotExportableError:
            return traced(*arguments)
        return exported.call(*arguments)

    program.__name__ = identity.name
    return jax.jit(program)


def traced_once(function: Callable[..., Any], *, static: Sequence[str]) -> Any:
    """Return a part of programs that is traced once for equal shapes and options.

    XLA joins it to the program that calls it.

    Args:
        function: Computes the part; it may ask for `parallel.platform`.
        static: Names of keyword arguments, hashable and never traced.
    """

    def run(platform: str, *args: Any, **options: Any) -> Any:
        del platform  # What is traced for one platform is of no other.
        return function(*args, **options)

    run.__name__ = function.__name__
    jitted = jax.jit(run, static_argnums=0, static_argnames=tuple(static))

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        return jitted(parallel.platform(), *args, **options)

    return call


@contextlib.contextmanager
def compiling_ahead(
    step: Callable[..., Any], state: Any, *, batches: Sequence[Any]
) -> Iterator[None]:
    """Compile a step for more shapes of rows, in a thread, while the body runs.

    Does nothing on a CPU, where steps need the cores, and with several processes, where
    pmap lowers nothing without values. Logs a shape that cannot be compiled; it is
    compiled when it is needed.

    Args:
        step: A step that `parallel.over_devices` has compiled.
        state: Its first argument.
        batches: Its second arguments, one of each shape.
    """
    if parallel.on_cpu() or processes.num_processes() > 1:
        yield
        return
    state_shapes = kept_programs.shapes(state, has_placement=True)
    batch_shapes = [kept_programs.shapes(rows, has_placement=True) for rows in batches]
    is_over = threading.Event()

    def compile_all() -> None:
        for row_shapes in batch_shapes:
            if is_over.is_set():
                return
            try:
                cast(Any, step).lower(state_shapes, row_shapes).compile()
            except RuntimeError as error:
                reason = errors.first_line(error)
                logger.info("note: compiling ahead ends: %s", reason)
                return

    thread = threading.Thread(target=compile_all)
    thread.start()
    try:
        yield
    finally:
        # An interpreter must not exit while the compiler runs.
        is_over.set()
        thread.join()


@contextlib.contextmanager
def making_ready(
    program: Callable[..., Any], state: Any, *, batches: Mapping[Any, Any]
) -> Iterator[Callable[[Any], None]]:
    """Load or compile a program for more shapes, in a thread, while the body runs.

    Yields a function that waits until the program is ready for one of the batches. What
    cannot be compiled fails when the program is called. Does nothing with several
    processes, as `compiling_ahead`.

    Args:
        program: What `parallel.over_rows` returned.
        state: Its first argument.
        batches: Second arguments by names for them, one of each shape, the first that
            is needed first.
    """
    if not batches or processes.num_processes() > 1:
        yield lambda name: None
        return

    def make(rows: Any) -> None:
        shapes = kept_programs.shapes((state, rows), has_placement=True)
        cast(Any, program).lower(*shapes).compile()

    executor = concurrent.futures.ThreadPoolExecutor(1)
    futures = {name: executor.submit(make, rows) for name, rows in batches.items()}

    def wait(name: Any) -> None:
        if name in futures:
            concurrent.futures.wait([futures[name]])

    try:
        yield wait
    finally:
        # An interpreter must not exit while the compiler runs.
        executor.shutdown(cancel_futures=True)
