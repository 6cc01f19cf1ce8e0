"""Traced programs are kept, found again, and told apart by all they depend on."""

import dataclasses
import multiprocessing
import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import settings
from tests.training import updates
from vaswani_jax.core import compilation_cache, kept_programs, parallel
from vaswani_jax.core.config import SearchConfig
from vaswani_jax.evaluation import validation
from vaswani_jax.inference import generate, line_translator, scoring
from vaswani_jax.training import step

ROWS = np.arange(24, dtype=np.float32).reshape(8, 1, 3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A directory of kept programs for this test alone."""
    monkeypatch.setattr(compilation_cache, "_home", tmp_path)
    return tmp_path / "programs"


@dataclasses.dataclass(eq=False)
class Scale:
    """A function over devices, and how often it was traced."""

    factor: float = 2.0
    num_traces: int = 0

    def __call__(self, state, rows):
        self.num_traces += 1
        return {"scaled": state * rows * self.factor}

    def identity(self):
        return kept_programs.Identity(
            "scale", (self.factor,), outputs=lambda state, rows: {"scaled": 0}
        )

    def run(self, state=3.0, rows=ROWS, **changes):
        """Return the outputs of a program of its own, as a new process has it."""
        identity = dataclasses.replace(self.identity(), **changes)
        run = parallel.over_rows(self, identity=identity)
        outputs = run(parallel.replicate(jnp.asarray(state)), rows)
        return np.asarray(outputs["scaled"])


def traces(factor=2.0, **changes):
    """Return how often a new process would trace the function."""
    scale = Scale(factor)
    np.testing.assert_array_equal(scale.run(**changes), 3 * ROWS * factor)
    return scale.num_traces


def test_shapes_have_a_placement_where_it_is_asked_for():
    placed = jax.device_put(ROWS, jax.devices()[-1])
    assert kept_programs.shapes(placed).sharding is None
    shape = kept_programs.shapes(placed, has_placement=True)
    assert shape.sharding == placed.sharding
    assert (shape.shape, shape.dtype) == (ROWS.shape, ROWS.dtype)
    # An array of NumPy lies on no device.
    assert kept_programs.shapes(ROWS, has_placement=True).sharding is None


def test_a_program_is_traced_once_for_all_processes(folder):
    assert [traces() for _ in range(3)] == [1, 0, 0]
    [file] = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_nothing_is_written_where_nothing_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(compilation_cache, "_home", None)
    assert [traces() for _ in range(2)] == [1, 1]
    monkeypatch.setattr(compilation_cache, "_home", tmp_path)
    before = jax.config.jax_enable_compilation_cache
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        assert [traces() for _ in range(2)] == [1, 1]
    finally:
        jax.config.update("jax_enable_compilation_cache", before)
    assert not list(tmp_path.iterdir())


def test_another_closure_shape_type_or_name_is_another_program(folder):
    assert traces() == 1
    assert traces(factor=5.0) == 1
    scale = Scale()
    for rows in (ROWS[:, :, :2], ROWS.astype(np.int32), ROWS[:, 0]):
        np.testing.assert_array_equal(scale.run(rows=rows), 6 * rows)
    assert scale.num_traces == 3
    assert traces(name="another") == 1
    assert len(list(folder.iterdir())) == 6


@pytest.mark.parametrize(
    "change",
    [
        lambda patch: patch.setattr(kept_programs, "_sources_at_start", lambda: "edit"),
        lambda patch: patch.setattr(kept_programs, "_versions", lambda: ("9.9",)),
        lambda patch: patch.setattr(jax, "__version__", "9.9"),
        lambda patch: patch.setenv("XLA_FLAGS", "--xla_a_flag_of_this_test"),
        lambda patch: patch.setattr(parallel, "device_kind", lambda: "TPU v9"),
        lambda patch: patch.setattr(parallel, "platform", lambda: "tpu"),
        lambda patch: patch.setattr(parallel, "num_devices", lambda: 4),
    ],
    ids="source packages jax flags kind platform devices".split(),
)
def test_whatever_a_program_depends_on_belongs_to_its_key(change, monkeypatch):
    identity = Scale().identity()

    def key():
        devices = parallel.describe()
        return kept_programs.key(identity, arguments=ROWS, devices=devices)

    before = key()
    assert key() == before
    change(monkeypatch)
    assert key() != before


@pytest.mark.parametrize(
    "context",
    [
        lambda: jax.enable_x64(True),
        lambda: jax.default_matmul_precision("highest"),
        lambda: jax.default_prng_impl("rbg"),
        lambda: jax.threefry_partitionable(False),
    ],
    ids="x64 precision generator partitionable".split(),
)
def test_options_of_jax_belong_to_the_key(context):
    def key():
        return kept_programs.key(Scale().identity(), arguments=ROWS, devices="")

    before = key()
    with context():
        assert key() != before
    assert key() == before


def test_a_program_is_looked_up_again_in_another_context(folder):
    scale = Scale()
    run = parallel.over_rows(scale, identity=scale.identity())
    for _ in range(2):
        run(jnp.ones(()), ROWS)
        with jax.default_matmul_precision("highest"):
            run(jnp.ones(()), ROWS)
    assert scale.num_traces == 2


def test_for_devices_that_are_not_here_nothing_is_kept(folder):
    scale = Scale()
    with parallel.targeting("tpu"):
        run = parallel.over_rows(scale, identity=scale.identity())
        run(jnp.ones(()), ROWS)
    assert scale.num_traces == 1 and not folder.exists()


DAMAGES = {
    "empty": lambda content: b"",
    "truncated": lambda content: content[:-1],
    "no program": lambda content: content[: len(content) // 20],
    "a changed byte": lambda content: content[:-9] + b"?" + content[-8:],
    "foreign": lambda content: b"\x7fELF" + content,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_made_again(name, folder):
    assert traces() == 1
    [file] = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(DAMAGES[name](content))
    assert [traces(), traces()] == [1, 0]
    assert file.read_bytes() == content


def test_the_file_of_another_program_is_made_again(folder):
    assert traces() == 1
    [file] = folder.iterdir()
    content = file.read_bytes()
    assert traces(factor=5.0) == 1
    for path in folder.iterdir():
        path.write_bytes(content)
    assert [traces(), traces(factor=5.0)] == [0, 1]


def test_programs_that_were_used_last_stay(folder, monkeypatch):
    files = {}
    for number, factor in enumerate((2.0, 3.0, 4.0)):
        assert traces(factor) == 1
        [files[factor]] = set(folder.iterdir()) - set(files.values())
        os.utime(files[factor], (number, number))
    # What a killed program left.
    (folder / "tmpabc.unfinished").write_bytes(b"")
    os.utime(folder / "tmpabc.unfinished", (0, 0))
    (folder / "tmpdef.unfinished").write_bytes(b"")
    assert traces(2.0) == 0
    size = files[2.0].stat().st_size
    monkeypatch.setattr(kept_programs, "LIMIT_BYTES", 3 * size)
    assert traces(5.0) == 1
    assert files[2.0].exists() and not files[3.0].exists() and files[4.0].exists()
    assert [path.name for path in folder.glob("tmp*")] == ["tmpdef.unfinished"]
    assert time.time() - files[2.0].stat().st_mtime < kept_programs.HOUR_SECONDS


def test_what_cannot_be_written_is_traced_again(folder):
    folder.write_text("a file, where the directory should be")
    assert [traces() for _ in range(2)] == [1, 1]


def test_what_was_edited_since_the_start_is_not_kept(folder, monkeypatch):
    """Nobody knows which text the process has read."""
    kept_programs.key(Scale().identity(), arguments=ROWS, devices="")
    monkeypatch.setattr(compilation_cache, "sources", lambda: "edited")
    assert traces() == 1
    assert not folder.exists()


def _write_often(path: str, content: bytes) -> None:
    for _ in range(100):
        compilation_cache.write(path, content)


@pytest.mark.filterwarnings("ignore:os.fork")
def test_two_processes_write_one_file_at_once(tmp_path):
    path = tmp_path / "file"
    contents = [bytes([letter]) * 100_000 for letter in b"ab"]
    context = multiprocessing.get_context("fork")
    writers = [
        context.Process(target=_write_often, args=(path, content))
        for content in contents
    ]
    compilation_cache.write(path, contents[0])
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        assert path.read_bytes() in contents
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_what_jax_cannot_export_is_traced_in_every_process(folder, caplog):
    caplog.set_level("INFO", "vaswani_jax")

    def calling_back(state, rows):
        jax.debug.callback(lambda: None)
        return state * rows

    identity = kept_programs.Identity("calling", (), outputs=lambda *_: 0)
    for _ in range(3):
        run = parallel.over_rows(calling_back, identity=identity)
        np.testing.assert_array_equal(run(jnp.asarray(3.0), ROWS), 3 * ROWS)
    # The first start learns it.
    [message] = caplog.messages
    assert message.startswith("note: calling is traced at every start: ")


def test_an_identity_must_tell_the_form_of_the_outputs(folder):
    with pytest.raises(TypeError, match=r"scale returns PyTreeDef.*scaled"):
        Scale().run(outputs=lambda state, rows: [0])


def test_a_program_that_needs_scipy_says_so():
    """Other programs are called without SciPy, which takes long to import."""

    def program(function, shape):
        argument = jax.ShapeDtypeStruct(shape, jnp.float32)
        return jax.export.export(jax.jit(function))(argument)

    for function, needs in ((jnp.linalg.qr, True), (lambda x: x @ x, False)):
        exported = program(function, (3, 3))
        assert (b"lapack" in exported.mlir_module_serialized) == needs


def rows_of(batch):
    return parallel.split_rows(batch, num_microbatches=1)


def replicated_params(small, vocab_size):
    params = settings.random_params(small.model, vocab_size=vocab_size, seed=1)
    return parallel.replicate(params)


def search(small):
    vocabulary = settings.letters_vocabulary()
    translator = line_translator.LineTranslator(small, vocabulary, n_best=2)
    nothing = np.zeros((8, 0), np.int32), np.zeros((8, 2), np.int32)
    rows = generate.Rows(updates.random_batch(3, rows=8).source, *nothing)
    params = (replicated_params(small, vocabulary.size),)
    return translator.search, params, rows_of(rows)


def score(small):
    layers = (("memory", (0,)),)
    run = scoring.scorer_on_devices((small.model,), updates.V, layers=layers)
    params = (replicated_params(small, updates.V),)
    return run, params, rows_of(updates.random_batch(3, rows=8))


def loss(small):
    run = validation.compile_loss_step(small, updates.V)
    params = replicated_params(small, updates.V)
    return run, params, rows_of(updates.random_batch(3, rows=8))


def update(small):
    run = step.make_train_steps(small, vocab_size=updates.V)(1)
    state = step.place_on_devices(small, updates.random_state(small, seed=1, step=3))
    return run, state, rows_of(updates.random_batch(3, rows=8))


def test_programs_that_differ_are_kept_apart():
    small, other = settings.small_settings(), settings.small_settings(seed=2)
    letters, V = settings.letters_vocabulary(), updates.V
    two, memory = (small.model, small.model), (("memory", (0,)),)

    def search_by(small, **options):
        return line_translator.LineTranslator(small, letters, **options).search

    programs = [
        *(search_by(small), search_by(other), search_by(small, n_best=2)),
        search_by(small, models=two),
        scoring.scorer_on_devices((small.model,), V, layers=memory),
        scoring.scorer_on_devices((small.model,), V + 1, layers=memory),
        scoring.scorer_on_devices((small.model,), V, layers=()),
        scoring.scorer_on_devices(two, V, layers=memory),
        validation.compile_loss_step(small, V),
        validation.compile_loss_step(small, V + 1),
        validation.compile_loss_step(other, V),
        step.make_train_steps(small, vocab_size=V)(1),
        step.make_train_steps(small, vocab_size=V)(2),
        step.make_train_steps(small, vocab_size=V + 1)(1),
        step.make_train_steps(other, vocab_size=V)(1),
    ]
    keys = {
        kept_programs.key(program.identity, arguments=(), devices="")
        for program in programs
    }
    assert len(keys) == len(programs)


def results(program, small):
    """Return all bits of the outputs, their tree, and whether the state is gone."""
    function, state, rows = program(small)
    outputs = function(state, rows)
    leaves, structure = jax.tree.flatten(jax.device_get(outputs))
    is_donated = jax.tree.leaves(state)[-1].is_deleted()
    return [(x.dtype, x.shape, x.tobytes()) for x in leaves], structure, is_donated


@pytest.mark.parametrize(
    ("program", "num_devices"),
    [(search, 1), (update, 1), (search, 8), (score, 8), (loss, 8), (update, 8)],
)
def test_a_kept_program_gives_the_bits_of_the_traced_one(
    program, num_devices, folder, monkeypatch
):
    here = jax.devices()[:num_devices]
    for name in ("devices", "local_devices"):
        monkeypatch.setattr(jax, name, lambda: here)
    for name in ("device_count", "local_device_count"):
        monkeypatch.setattr(jax, name, lambda: num_devices)
    changes = {"model.dropout_rate": 0.1, "training.shard_optimizer": num_devices > 1}
    small = settings.small_settings(seed=num_devices, **changes)
    monkeypatch.setattr(compilation_cache, "_home", None)
    traced = results(program, small)
    monkeypatch.setattr(compilation_cache, "_home", folder.parent)
    assert results(program, small) == traced
    # Beside it, sharding the optimizer keeps the program of the initial state.
    assert len(list(folder.glob(f"{program.__name__}-*"))) == 1
    # As in another process, which traces nothing.
    jax.clear_caches()
    monkeypatch.setattr(jax.export, "export", None)
    assert results(program, small) == traced
    assert traced[-1] == (program is update)


def test_a_kept_initial_state_is_that_of_the_traced_program(folder, monkeypatch):
    small = settings.small_settings(**{"training.ema_decay": 0.5})

    def state():
        created = step.create_state(small, vocab_size=updates.V)
        leaves, structure = jax.tree.flatten(created)
        return [np.asarray(leaf).tobytes() for leaf in leaves], structure

    monkeypatch.setattr(compilation_cache, "_home", None)
    traced = state()
    monkeypatch.setattr(compilation_cache, "_home", folder.parent)
    assert state() == traced
    monkeypatch.setattr(jax.export, "export", None)
    assert state() == traced


@pytest.mark.parametrize("value", [np.ones(3), object(), {1, 2}, SearchConfig, len])
def test_what_has_no_whole_description_identifies_nothing(value):
    with pytest.raises(TypeError, match="cannot be known by"):
        kept_programs.describe({"settings": [value]})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((1, 2), [1, 2]),
        ((1, (2, 3)), ((1, 2), 3)),
        ("1", 1),
        (1, 1.0),
        (True, 1),
        ({"a": "b"}, {"a, b": ""}),
        (("a, 'b",), ("a", "b")),
        (Scale(1.0), Scale(2.0)),
        (b"\x00" * 2000, b"\x00" * 1999 + b"\x01"),
    ],
)
def test_different_values_have_different_descriptions(one, other):
    assert kept_programs.describe(one) != kept_programs.describe(other)
    assert kept_programs.describe(one) == kept_programs.describe(one)
