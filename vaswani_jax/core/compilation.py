"""Trace programs once, and compile them ahead of their first call."""

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


def compiling_ahead(
    step: Callable[..., Any], state: Any, *, batches: Sequence[Any]
) -> contextlib.AbstractContextManager[object]:
    """Compile a step for more shapes of rows, in a thread, while the body runs.

    As `making_ready`, but does nothing on a CPU, where steps need the cores.

    Args:
        step: A step that `parallel.over_devices` has compiled.
        state: Its first argument.
        batches: Its second arguments, one of each shape.
    """
    by_number: dict[int, Any] = {} if parallel.on_cpu() else dict(enumerate(batches))
    return making_ready(step, state, batches=by_number)


@contextlib.contextmanager
def making_ready(
    program: Callable[..., Any], state: Any, *, batches: Mapping[Any, Any]
) -> Iterator[Callable[[Any], None]]:
    """Load or compile a program for more shapes, in a thread, while the body runs.

    Yields a function that waits until the program is ready for one of the batches. A
    shape that cannot be compiled is logged, and ends the thread: it and all later ones
    are compiled, or fail, when the program is called.

    Does nothing with several processes, where pmap lowers nothing without values. On an
    accelerator, KeyboardInterrupt in the body does not wait for the compiler.

    Args:
        program: What `parallel.over_devices` or `parallel.over_rows` returned.
        state: Its first argument.
        batches: Second arguments by names for them, one of each shape, the first that
            is needed first.
    """
    if not batches or processes.num_processes() > 1:
        yield lambda name: None
        return
    state_shapes = kept_programs.shapes(state, has_placement=True)
    row_shapes = {
        name: kept_programs.shapes(rows, has_placement=True)
        for name, rows in batches.items()
    }
    events = {name: threading.Event() for name in batches}
    is_over = threading.Event()

    def compile_all() -> None:
        try:
            for name, shapes in row_shapes.items():
                if is_over.is_set():
                    return
                cast(Any, program).lower(state_shapes, shapes).compile()
                events[name].set()
        except Exception as error:  # A call of the program raises it again.
            logger.info("note: compiling ahead ends: %s", errors.first_line(error))
        finally:
            for event in events.values():
                event.set()

    def wait(name: Any) -> None:
        if name in events:
            events[name].wait()

    thread = threading.Thread(target=compile_all, daemon=True)
    thread.start()
    must_wait = True
    try:
        yield wait
    except KeyboardInterrupt:
        must_wait = parallel.on_cpu()  # For an accelerator, compiling takes minutes.
        raise
    finally:
        is_over.set()
        if must_wait:
            # An interpreter must not exit while the compiler runs.
            thread.join()
