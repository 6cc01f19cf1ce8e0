"""Flags with which tests compile: for many devices, and in little time."""


def flags(devices: int | None) -> str:
    """XLA_FLAGS for so many virtual devices of a CPU; None leaves it to the program.

    Tests compile far more than they compute: without LLVM's optimisations, with the
    older emitters of loops and in one piece they take a third of the time.
    """
    count = [f"--xla_force_host_platform_device_count={devices}"] if devices else []
    return " ".join(
        (
            *count,
            "--xla_backend_optimization_level=0",
            "--xla_cpu_use_fusion_emitters=false",
            "--xla_cpu_parallel_codegen_split_count=1",
            "--xla_llvm_disable_expensive_passes=true",
        )
    )
