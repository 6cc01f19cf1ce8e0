"""Trace programs once, and compile them ahead of their first call."""

import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import jax
import jax.export

from vaswani_jax.core import errors, kept_programs, parallel, processes

logger = logging.getLogger(__name__)
# JAX makes what all shapes of a program share when the first is lowered: two threads
# would make two, and the program would forget what one of them has compiled.
_lowering = threading.Lock()


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


def row_shapes(rows: Any) -> tuple[tuple[int, ...], ...]:
    """Return the shapes of a batch's arrays, for which a program is compiled."""
    return tuple(array.shape for array in jax.tree.leaves(rows))


@contextlib.contextmanager
def making_ready(
    program: Callable[..., Any], state: Any, *, batches: Iterable[Any]
) -> Iterator[Callable[[Any], None]]:
    """Load or compile a program for more shapes, in a thread, while the body runs.

    Yields a function to call with a batch before the program is. It waits while the
    thread compiles the program for its shapes, or compiles it if the thread has not
    begun to. A first failure is logged, and ends this: from then on, the program is
    compiled, or fails, when it is called.

    Does nothing with several processes, where pmap lowers nothing without values. On an
    accelerator, KeyboardInterrupt in the body does not wait for the compiler.

    Args:
        program: What `parallel.over_devices` or `parallel.over_rows` returned.
        state: Its first argument.
        batches: Second arguments, the first that is needed first. One of each shape is
            compiled.
    """
    by_shape = {
        row_shapes(rows): kept_programs.shapes(rows, has_placement=True)
        for rows in batches
    }
    if not by_shape or processes.num_processes() > 1:
        yield lambda rows: None
        return
    state_shapes = kept_programs.shapes(state, has_placement=True)
    events = {key: threading.Event() for key in by_shape}
    lock, is_over = threading.Lock(), threading.Event()

    def begin(key: Any) -> Any:
        """Return the shapes of a batch to whoever asks first; None to all others."""
        with lock:
            return by_shape.pop(key, None)

    def compile_one(key: Any, shapes: Any) -> None:
        try:
            with _lowering:
                lowered = cast(Any, program).lower(state_shapes, shapes)
            lowered.compile()
        except Exception as error:  # A call of the program raises it again.
            is_over.set()
            logger.info("note: compiling ahead ends: %s", errors.first_line(error))
        finally:
            events[key].set()

    def compile_all() -> None:
        for key in events:
            if is_over.is_set():
                return
            if (shapes := begin(key)) is not None:
                compile_one(key, shapes)

    def make_ready(rows: Any) -> None:
        key = row_shapes(rows)
        if (shapes := begin(key)) is None:
            if key in events:
                events[key].wait()
        elif is_over.is_set():
            events[key].set()
        else:
            compile_one(key, shapes)

    thread = threading.Thread(target=compile_all, daemon=True)
    thread.start()
    must_wait = True
    try:
        yield make_ready
    except KeyboardInterrupt:
        must_wait = parallel.on_cpu()  # For an accelerator, compiling takes minutes.
        raise
    finally:
        is_over.set()
        if must_wait:
            # An interpreter must not exit while the compiler runs.
            thread.join()
