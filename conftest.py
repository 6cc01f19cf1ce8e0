"""Eight virtual devices on a CPU, so that every test can spread over devices."""

import gc
import importlib.util
import os
import pathlib
from collections.abc import Generator, Iterator

import hypothesis
import pytest

from tests import annotations, object_store, workers, xla

# Before anything imports the package.
annotations.check()

# Read once, when jax starts its backend.
# `JAX_PLATFORMS=cuda pytest -m gpu` runs those that need a GPU, on it.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if os.environ["JAX_PLATFORMS"] == "cpu":
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {xla.flags(8)}"
# torch and CTranslate2, here and in programs: the other cores have other tests, and
# threads that wait for such small models compute nothing.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine is slow, not wrong.
hypothesis.settings.register_profile("no_deadline", deadline=None)
hypothesis.settings.load_profile("no_deadline")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: pathlib.Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect no doctests from test modules."""
    collectors = yield
    if not file_path.name.startswith("test_"):
        return collectors
    # Doctests have another class of collector.
    return [collector for collector in collectors if type(collector) is pytest.Module]


def pytest_collection_finish() -> None:
    """Keep the garbage collector from what stays for all tests, and run it less."""
    gc.collect()
    gc.freeze()
    # Tracing soon allocates more objects than Python's default threshold (700 or
    # 2,000).
    gc.set_threshold(20_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def share_compiled_programs(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Trace and compile once what several tests do, in whichever worker comes first."""
    from vaswani_jax.core import compilation_cache  # after the flags above

    directory = workers.shared_directory(tmp_path_factory)
    # The programs that tests start look there, too.
    os.environ["JAX_COMPILATION_CACHE_DIR"] = str(directory / "compiled")
    os.environ["VASWANI_JAX_CACHE"] = str(directory / "cache")
    compilation_cache.enable()


@pytest.fixture(autouse=True)
def without_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Score Japanese and Korean as where MeCab is not installed, wherever it is."""
    find_spec = importlib.util.find_spec

    def find(name: str, package: str | None = None) -> object:
        is_dictionary = name.partition(".")[0] in ("MeCab", "mecab_ko")
        return None if is_dictionary else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", find)


@pytest.fixture(scope="module", autouse=True)
def clear_compiled_programs() -> Iterator[None]:
    """Drop the compiled programs of a module after it: they fill the memory."""
    import jax

    yield
    jax.clear_caches()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[object_store.ObjectStore]:
    """A server that speaks S3, for all tests of a worker."""
    with object_store.serve() as server:
        yield server


@pytest.fixture
def s3(
    s3_server: object_store.ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> object_store.ObjectStore:
    """The server, to which s3:// leads while a test runs."""
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server
