"""The figures of launch/gpu_check.sh in one table, and whether they reach the goals.

python -m tests.benchmarks.gpu_verdict runs/gpu_check
"""

import json
import pathlib
import sys

GOAL = 0.45  # of the peak, big in bfloat16


def figures(directory: pathlib.Path) -> dict[str, dict[str, float]]:
    """What each measurement printed last; those without a result are left out."""
    found = {}
    for path in sorted(directory.glob("*-*-*.txt")):
        lines = path.read_text().splitlines()
        if lines and lines[-1].startswith("{"):
            found[path.stem] = json.loads(lines[-1])
    return found


def main() -> None:
    """Print, and fail where a goal is missed or was not measured."""
    found = figures(pathlib.Path(sys.argv[1]))
    print(f"{'':<24} {'step':>9} {'target tokens/s':>16} {'MFU':>7}")
    for name, values in found.items():
        share = values.get("model_flops_utilization")
        print(
            f"{name:<24} {values['step_seconds']:>7.4f} s "
            f"{values['target_tokens_per_second']:>16,.0f} "
            + (f"{share:>7.1%}" if share else "")
        )
    missed = []
    for size in ("big", "base"):
        ours = [
            values
            for name, values in found.items()
            if name.startswith(f"{size}-bfloat16") and not name.endswith("torch")
        ]
        torch = found.get(f"{size}-bfloat16-torch")
        if not ours or torch is None:
            missed.append(f"{size}: not measured")
            continue
        best = min(ours, key=lambda values: values["step_seconds"])
        ratio = torch["step_seconds"] / best["step_seconds"]
        print(f"{size}: {ratio:.2f} times the speed of torch compiled, in bfloat16")
        if ratio <= 1:
            missed.append(f"{size}: not faster than torch")
        if size == "big" and best["model_flops_utilization"] < GOAL:
            missed.append(f"{size}: under {GOAL:.0%} of the peak")
    print("\n".join(missed) or "both goals are reached")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
