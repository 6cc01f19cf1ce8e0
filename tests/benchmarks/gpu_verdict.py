"""The figures of launch/gpu_check.sh in one table, and whether they reach the goals.

python tests/benchmarks/gpu_verdict.py DIRECTORY OUTPUT.json
"""

import importlib.metadata
import json
import pathlib
import sys

GOAL = 0.45  # of the peak, big in bfloat16
# Of two losses after as many updates on one batch, from the same weights: bfloat16 has
# 8 bits, and masks of dropout are the same.
SAME_LOSS = 0.02
MEASUREMENTS = [
    f"{size}-{kind}"
    for size in ("big", "base")
    for kind in ("bfloat16-cudnn", "bfloat16-xla", "bfloat16-torch", "float32-xla")
]


def figures(directory: pathlib.Path) -> dict[str, dict[str, float]]:
    """Return what each measurement printed last, but for those without a result."""
    results = {}
    for name in MEASUREMENTS:
        path = directory / f"{name}.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        if lines and lines[-1].startswith("{"):
            results[name] = json.loads(lines[-1])
    return results


def missed(results: dict[str, dict[str, float]]) -> list[str]:
    """Print the ratios to torch; return what is missed or was not measured."""
    failures = [f"{name}: not measured" for name in MEASUREMENTS if name not in results]
    for size in ("big", "base"):
        names = [n for n in results if n.startswith(size) and not n.endswith("torch")]
        losses = [results[name]["loss"] for name in names]
        # A NaN is near nothing.
        if not all(abs(loss - losses[0]) <= SAME_LOSS * losses[0] for loss in losses):
            named = (f"{n} {loss:.4f}" for n, loss in zip(names, losses, strict=True))
            failures.append(f"{size}: losses differ, {', '.join(named)}")
    for size in ("big", "base"):
        jax_results = [
            results[name]
            for name in (f"{size}-bfloat16-cudnn", f"{size}-bfloat16-xla")
            if name in results
        ]
        torch = results.get(f"{size}-bfloat16-torch")
        if not jax_results or torch is None:
            continue
        best = min(jax_results, key=lambda values: values["step_seconds"])
        ratio = torch["step_seconds"] / best["step_seconds"]
        print(f"{size}: {ratio:.2f} times the speed of torch compiled, in bfloat16")
        if ratio <= 1:
            failures.append(f"{size}: not faster than torch")
        if size == "big" and best["model_flops_utilization"] < GOAL:
            failures.append(f"{size}: under {GOAL:.0%} of the peak")
    return failures


def main() -> None:
    """Print, write, and fail where a goal is missed or was not measured."""
    results = figures(pathlib.Path(sys.argv[1]))
    record = {"jax": importlib.metadata.version("jax"), **results}
    pathlib.Path(sys.argv[2]).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{'':<24} {'step':>9} {'target tokens/s':>16} {'loss':>8} {'MFU':>7}")
    for name, values in results.items():
        share = values.get("model_flops_utilization")
        print(
            f"{name:<24} {values['step_seconds']:>7.4f} s "
            f"{values['target_tokens_per_second']:>16,.0f} {values['loss']:>8.4f} "
            + (f"{share:>7.1%} of the peak {values['peak_from']}" if share else "")
        )
    print("products of float32 are float32's: no TF32")
    failures = missed(results)
    print("\n".join(failures) or "both goals of speed are reached")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
