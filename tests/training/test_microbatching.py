"""The memory a step needs, and the parts a batch is computed in to fit."""

import jax
import numpy as np
import pytest

from tests import settings
from vaswani_jax.core import compilation_cache, memory, parallel, types
from vaswani_jax.data import batching
from vaswani_jax.training import microbatching, step

pytestmark = pytest.mark.usefixtures("steps_once")

V = 300
MIB = 2**20
BUCKET = batching.Bucket(512, 16, 16)  # 64 rows for each of eight devices


def empty(bucket):
    lengths = bucket.source_length, bucket.target_length, bucket.target_length
    return types.Batch(*(np.zeros((bucket.rows, n), np.int32) for n in lengths))


def wide_settings(accumulate_steps):
    return settings.small_settings(
        **{"training.accumulate_steps": accumulate_steps, "model.d_ff": 64}
    )


def plan(buckets, *, accumulate_steps, previous=1):
    wide = wide_settings(accumulate_steps)
    state = parallel.replicate(step.create_state(wide, vocab_size=V))
    return microbatching.plan(
        wide,
        state=state,
        empty_batch=empty,
        buckets=buckets,
        vocab_size=V,
        previous=previous,
        make_train_step=step.make_train_steps(wide, vocab_size=V),
    )


def test_a_step_needs_at_least_its_logits_and_their_gradient():
    planned = plan([BUCKET], accumulate_steps="1")
    assert planned.step_bytes > 2 * 4 * 64 * 16 * V  # of one device, in float32
    assert planned.state_bytes > 3 * 4 * V * settings.small_settings().model.d_model


def test_a_moving_average_needs_as_much_as_the_parameters():
    def state_bytes(**changes):
        small = settings.small_settings(**changes)
        return memory.size_in_bytes(step.placed_shapes(small, vocab_size=V))

    params = settings.random_params(
        settings.small_settings().model, vocab_size=V, seed=1
    )
    extra = state_bytes(**{"training.ema_decay": 0.9}) - state_bytes()
    assert extra == sum(leaf.nbytes for leaf in jax.tree.leaves(params))


def test_auto_divides_the_batch_until_it_fits(monkeypatch):
    undivided = plan([BUCKET], accumulate_steps="1")
    monkeypatch.setattr(
        memory,
        "available_bytes",
        lambda held: undivided.state_bytes + undivided.step_bytes // 3,
    )
    planned = plan([BUCKET], accumulate_steps="auto")
    assert planned.num_microbatches in (4, 8)
    assert (
        planned.state_bytes + planned.step_bytes
        <= microbatching.USABLE * planned.available_bytes
    )
    # What is not auto is done as it was asked for.
    assert plan([BUCKET], accumulate_steps="1").num_microbatches == 1


def test_what_was_found_is_remembered_beside_the_compiled_programs(
    tmp_path, monkeypatch
):
    plain = plan([BUCKET], accumulate_steps="1")
    directory = tmp_path / "compiled"
    monkeypatch.setattr(compilation_cache, "directory", lambda: directory)
    measured = []
    measure = memory.needed_bytes

    def counted(*arguments, **options):
        measured.append(options)
        return measure(*arguments, **options)

    monkeypatch.setattr(memory, "needed_bytes", counted)
    for _ in range(2):
        planned = plan([BUCKET], accumulate_steps="1")
        assert (planned.state_bytes, planned.step_bytes) == (
            plain.state_bytes,
            plain.step_bytes,
        )
    assert len(measured) == 1
    # Another shape is another entry; a damaged or missing one is made again.
    assert (
        plan([batching.Bucket(1024, 16, 16)], accumulate_steps="1").step_bytes
        > plain.step_bytes
    )
    assert len(measured) == 2
    files = sorted(directory.iterdir())
    files[0].write_text("")
    files[1].unlink()
    assert plan([BUCKET], accumulate_steps="1").step_bytes == plain.step_bytes
    assert len(measured) == 3


def test_what_cannot_be_remembered_is_found_again(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        compilation_cache, "directory", lambda: tmp_path / "file" / "compiled"
    )
    assert plan([BUCKET], accumulate_steps="1").step_bytes > 0


def test_auto_leaves_whole_what_fits_and_goes_on_as_before():
    assert plan([BUCKET], accumulate_steps="auto").num_microbatches == 1
    assert plan([BUCKET], accumulate_steps="auto", previous=2).num_microbatches == 2


def test_the_programs_of_all_shapes_need_memory_where_they_lie_in_it():
    small = settings.small_settings(**{"training.accumulate_steps": "auto"})
    bucket = batching.Bucket(64, 16, 16)

    def choose(available, *, program):
        return microbatching.choose(
            small,
            buckets=[bucket],
            num_shapes=3,
            vocab_size=V,
            previous=1,
            available_bytes=available,
            needed_bytes=lambda bucket, number: memory.NeededBytes(
                100, 600 // number, program
            ),
        )

    without = choose(1000, program=0)
    assert (without.num_microbatches, without.needed_bytes) == (1, 700)
    assert "programs" not in str(without)
    planned = choose(1000, program=70)
    assert (planned.num_microbatches, planned.program_bytes) == (2, 210)
    assert planned.needed_bytes == 100 + 300 + 210
    assert "0 MiB of programs" in str(planned)
    with pytest.raises(microbatching.DoesNotFitError) as refused:
        choose(200, program=70)
    assert refused.value.plan.num_microbatches == 8


def test_auto_divides_what_the_compiler_refuses():
    auto = wide_settings("auto")
    make_train_step = step.make_train_steps(auto, vocab_size=V)

    def make_refusing_step(number):
        if number < 4:
            raise RuntimeError("RESOURCE_EXHAUSTED: (97.1G) exceeds HBM (15.75G).")
        return make_train_step(number)

    def planned(run):
        return microbatching.plan(
            run,
            state=parallel.replicate(step.create_state(run, vocab_size=V)),
            empty_batch=empty,
            buckets=[BUCKET],
            vocab_size=V,
            previous=1,
            make_train_step=make_refusing_step,
        )

    assert planned(auto).num_microbatches == 4
    whole = wide_settings("1")
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
        planned(whole)


def test_rows_that_do_not_fit_are_refused_with_the_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda held: 3 * MIB // 2**10)
    with pytest.raises(ValueError, match="single rows of 16 tokens"):
        plan([batching.Bucket(4, 16, 16)], accumulate_steps="auto")


def test_a_step_that_does_not_fit_is_known(monkeypatch):
    planned = plan([BUCKET], accumulate_steps="1")
    assert planned.fits
    needed = planned.state_bytes + planned.step_bytes
    for available, warned in ((needed, False), (needed - 1, True)):
        monkeypatch.setattr(memory, "available_bytes", lambda held, a=available: a)
        planned = plan([BUCKET], accumulate_steps="1")
        assert planned.fits != warned


def test_rows_that_devices_and_parts_add_are_logged():
    # Of 8 devices, 12 rows each: 6 + 6, or 8 parts of 2.
    even, long = batching.Bucket(1600, 16, 16), batching.Bucket(96, 256, 256)
    assert microbatching.describe_padding([even, long], num_microbatches=2) == ""
    text = microbatching.describe_padding([even, long], num_microbatches=8)
    assert "128 rows of 256 tokens are computed for 96, 33% more" in text
    long = batching.Bucket(96, 200, 256)
    text = microbatching.describe_padding([even, long], num_microbatches=8)
    assert (
        "rows of 200 source and 256 target tokens are computed for 96, 33% more" in text
    )
    for parts in (1, 2, 3, 8, 100):
        for rows in (1, 7, 96):
            leaf = np.zeros((rows, 3))
            split = parallel.split_rows(leaf, num_microbatches=parts)
            computed = parallel.computed_rows(rows, num_microbatches=parts)
            assert computed * 3 == split.size


def test_the_largest_shape_is_that_of_the_most_logits():
    small = settings.small_settings()

    def largest(*buckets, vocab_size):
        return microbatching.largest_bucket(
            small, buckets, vocab_size=vocab_size, num_microbatches=1
        )

    wide, long = batching.Bucket(96, 4, 4), batching.Bucket(16, 16, 16)
    assert largest(long, wide, vocab_size=9000) == wide
    # Attention weights grow with the square of the length.
    long = batching.Bucket(8, 2000, 2000)
    wide = batching.Bucket(4000, 4, 4)
    assert largest(wide, long, vocab_size=9) == long


def test_the_lengths_of_both_sides_count_for_the_largest_shape():
    def largest(*buckets, **changes):
        return microbatching.largest_bucket(
            settings.small_settings(**changes),
            buckets,
            vocab_size=9000,
            num_microbatches=1,
        )

    source, target = batching.Bucket(64, 40, 8), batching.Bucket(64, 8, 40)
    # Only the target has logits.
    assert largest(source, target) == target
    assert largest(target, batching.Bucket(64, 12, 40)).source_length == 12
    many = {"model.num_encoder_layers": 99, "model.num_decoder_layers": 1}
    assert largest(source, target, **many) == source


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_the_layers_of_both_stacks_count_for_the_largest_shape(stack):
    # Logits of 9,000 subwords outweigh the attention of one layer, not of many.
    wide, long = batching.Bucket(560, 4, 4), batching.Bucket(8, 200, 200)
    for layers, expected in ((1, wide), (20, long)):
        small = settings.small_settings(**{f"model.num_{stack}_layers": layers})
        assert expected == microbatching.largest_bucket(
            small, [wide, long], vocab_size=9000, num_microbatches=1
        )


def test_rows_of_padding_count_for_the_largest_shape(monkeypatch):
    # 8 parts on 8 devices: 96 rows take as many as 128.
    monkeypatch.setattr(parallel, "num_devices", lambda: 8)
    small = settings.small_settings()
    even, uneven = batching.Bucket(128, 32, 32), batching.Bucket(96, 40, 40)
    assert even.rows * even.source_length > uneven.rows * uneven.source_length
    planned = [
        microbatching.largest_bucket(
            small, [even, uneven], vocab_size=9000, num_microbatches=parts
        )
        for parts in (1, 8)
    ]
    assert planned == [even, uneven]


def test_the_shape_planned_is_the_largest_in_its_parts():
    devices = jax.device_count()
    even, uneven = (
        batching.Bucket(64 * devices, 16, 16),
        batching.Bucket(33 * devices, 20, 20),
    )
    needed = {
        bucket: plan([bucket], accumulate_steps="32").step_bytes
        for bucket in (even, uneven)
    }
    assert needed[uneven] > needed[even]
    assert plan([even, uneven], accumulate_steps="32").step_bytes == needed[uneven]
