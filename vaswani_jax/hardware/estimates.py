"""Estimate times, speeds and costs from the facts of a compiler; measure nothing."""

import dataclasses

from vaswani_jax.hardware.chips import Chip
from vaswani_jax.hardware.communication import Collective
from vaswani_jax.hardware.compiled_work import Work
from vaswani_jax.hardware.programs import Program


@dataclasses.dataclass(frozen=True)
class StepTime:
    """The expected seconds of one update.

    Attributes:
        computing: The compiler's cycles at the chip's clock. Kernels that it gives no
            cycles read and write their result's bytes.
        communication: All communication, at the speed of the links.
        exposed: The part of it in which nothing is computed.
    """

    computing: float
    communication: float
    exposed: float

    @property
    def seconds(self) -> float:
        """Of the whole update."""
        return self.computing + self.exposed


def step_time(program: Program, chip: Chip, *, num_devices: int) -> StepTime | None:
    """Return the expected time of a step; None where there are no cycles or no clock.

    Args:
        program: The compiled step.
        chip: The chip that it is compiled for.
        num_devices: How many devices communicate.
    """
    computing = work_seconds(program.work, chip)
    if computing is None or chip.clock_hz is None:
        return None
    communication = [
        ring_seconds(collective, chip, num_devices=num_devices)
        for collective in program.collectives
    ]
    return StepTime(
        computing=computing,
        communication=sum(communication),
        exposed=exposed_seconds(
            program.collectives, communication, clock_hz=chip.clock_hz
        ),
    )


def work_seconds(work: Work, chip: Chip) -> float | None:
    """Return the time of some work; None where there are no cycles or no clock.

    Kernels that have no cycles write their results, and read as much.
    """
    if not work.estimated_cycles or chip.clock_hz is None:
        return None
    without_cycles = 2 * work.bytes_without_cycles / chip.memory_bytes_per_second
    return work.estimated_cycles / chip.clock_hz + without_cycles


def ring_seconds(collective: Collective, chip: Chip, *, num_devices: int) -> float:
    """Return how long a ring of devices takes, by its bytes and its links.

    An all-reduce sends its result twice but for a share; reduce-scatter and all-gather
    send the whole array once. Latency is left out.
    """
    size, num_receivers = collective.num_bytes, num_devices - 1
    sent = {
        "all-reduce": 2 * size * num_receivers / num_devices,
        "reduce-scatter": size * num_receivers,
        "all-gather": size * num_receivers / num_devices,
    }[collective.kind]
    return sent / (chip.link_bytes_per_second * collective.num_links)


def exposed_seconds(
    collectives: list[Collective],
    seconds: list[float],
    *,
    clock_hz: float,
) -> float:
    """Return the time in which devices wait for communication.

    The links carry one after the other, in the order of the starts. What is scheduled
    between a start and its end is computed meanwhile.

    Args:
        collectives: The communication of a program.
        seconds: What each takes.
        clock_hz: The clock of the estimated cycles.
    """
    waited = links_free = 0.0
    arrivals: dict[int, float] = {}
    by_start = sorted(
        range(len(collectives)), key=lambda i: collectives[i].start_cycles
    )
    by_end = sorted(range(len(collectives)), key=lambda i: collectives[i].end_cycles)
    for index in by_end:
        end = collectives[index].end_cycles
        for earlier in by_start:
            start = collectives[earlier].start_cycles
            if earlier not in arrivals and start <= end:
                links_free = (
                    max(links_free, start / clock_hz + waited) + seconds[earlier]
                )
                arrivals[earlier] = links_free
        waited += max(0.0, arrivals[index] - (end / clock_hz + waited))
    return waited


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """Expected time and cost of a whole run.

    Attributes:
        step_seconds: Of one update.
        target_tokens_per_second: Of all devices.
        mfu: Operations of the model by those that the chips could do.
        hours: To the last update, evaluations and checkpoints apart.
        device_hours: Of all chips.
        dollars: At a price; None without one.
    """

    step_seconds: float
    target_tokens_per_second: float
    mfu: float
    hours: float
    device_hours: float
    dollars: float | None


def run(
    step_seconds: float,
    chip: Chip,
    *,
    num_chips: int,
    update_flops: float,
    target_tokens: float,
    num_steps: int,
    dollars_per_hour: float | None,
) -> Run:
    """Return what follows from the time of an update.

    Args:
        step_seconds: Of one update.
        chip: The chip.
        num_chips: How many.
        update_flops: Operations of the model in an update on the global batch.
        target_tokens: Of a global batch.
        num_steps: Updates of the run.
        dollars_per_hour: The price of a chip.
    """
    peak = chip.flops_per_second * chip.devices_per_chip * num_chips
    hours = step_seconds * num_steps / 3600
    return Run(
        step_seconds=step_seconds,
        target_tokens_per_second=target_tokens / step_seconds,
        mfu=update_flops / peak / step_seconds,
        hours=hours,
        device_hours=hours * num_chips,
        dollars=dollars_per_hour and dollars_per_hour * hours * num_chips,
    )


def least_step_seconds(
    program: Program, chip: Chip, *, update_flops: float, num_devices: int
) -> float:
    """Return a bound: the products at the peak, or the arguments and results once.

    No step takes less, whatever the compiler makes of it.

    Args:
        program: The compiled step.
        chip: The chip.
        update_flops: Operations of the model in an update on the global batch.
        num_devices: How many devices share them.
    """
    products = update_flops / num_devices / chip.flops_per_second
    moved_bytes = sum(
        program.memory[name]
        for name in ("argument_size_in_bytes", "output_size_in_bytes")
    )
    return max(products, moved_bytes / chip.memory_bytes_per_second)
