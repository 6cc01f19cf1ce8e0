"""Whole programs on real text: decode, and CTranslate2 with the same model exported.

    python -m tests.benchmarks.whole_program --input=FILE --ctranslate2=DIR -- FLAGS

FLAGS are those of `vaswani_jax.decode`; DIR is what `vaswani_jax.export` has written.
Each program starts, reads the file, translates it and ends, in turn; a first run of
each is not counted (it compiles, or warms the files). With `--engine` it is the
CTranslate2 program itself, which that package's environment runs.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).parents[2]


def engine(arguments: argparse.Namespace) -> None:
    """Lines in, lines out, as CTranslate2's documentation has it."""
    import ctranslate2
    import sentencepiece

    subwords = sentencepiece.SentencePieceProcessor(
        model_file=str(arguments.ctranslate2 / "source.spm")
    )
    translator = ctranslate2.Translator(
        str(arguments.ctranslate2),
        compute_type=arguments.compute_type,
        inter_threads=arguments.inter,
        intra_threads=2 // arguments.inter,
    )
    lines = arguments.input.read_text(encoding="utf-8").splitlines()
    results = translator.translate_batch(
        subwords.encode(lines, out_type=str),
        beam_size=arguments.beam_size,
        length_penalty=arguments.length_penalty,
        max_batch_size=64,
    )
    for result in results:
        print(subwords.decode(result.hypotheses[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=pathlib.Path, required=True)
    parser.add_argument("--ctranslate2", type=pathlib.Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="that has it")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam_size", type=int, default=4)
    parser.add_argument("--length_penalty", type=float, default=0.6)
    parser.add_argument("--engine", action="store_true")
    parser.add_argument("--compute_type", default="float32")
    parser.add_argument("--inter", type=int, default=1)
    parser.add_argument("flags", nargs="*")
    arguments = parser.parse_args()
    if arguments.engine:
        engine(arguments)
        return
    search = [
        f"--beam_size={arguments.beam_size}",
        f"--length_penalty={arguments.length_penalty}",
    ]
    engine_command = [
        *(arguments.python, "-m", "tests.benchmarks.whole_program", "--engine"),
        *(f"--input={arguments.input}", f"--ctranslate2={arguments.ctranslate2}"),
        *search,
    ]
    commands = {
        "vaswani_jax": [
            *(sys.executable, "-m", "vaswani_jax.decode", *arguments.flags),
            *(f"--config.search.{flag[2:]}" for flag in search),
            f"--input={arguments.input}",
        ],
        "CTranslate2 float32": engine_command,
        "CTranslate2 float32, two workers": [*engine_command, "--inter=2"],
        "CTranslate2 int8": [*engine_command, "--compute_type=int8"],
    }
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(arguments.rounds + 1):
            for name, command in commands.items():
                spent = timed(command, pathlib.Path(folder, "output"))
                if turn:
                    seconds[name].append(spent)
    our_seconds = seconds["vaswani_jax"]
    print("| | median s | best s | other / ours |\n| --- | --- | --- | --- |")
    for name, program_seconds in seconds.items():
        ratio = statistics.median(
            a / b for a, b in zip(program_seconds, our_seconds, strict=True)
        )
        median = statistics.median(program_seconds)
        print(f"| {name} | {median:.2f} | {min(program_seconds):.2f} | {ratio:.2f} |")


def timed(command: list[str], output: pathlib.Path) -> float:
    """Seconds of a program from its start to its end, its lines in a file."""
    with output.open("wb") as stream:
        start_time = time.perf_counter()
        subprocess.run(
            command, stdout=stream, stderr=subprocess.DEVNULL, cwd=ROOT, check=True
        )
        spent = time.perf_counter() - start_time
    assert output.stat().st_size > 0
    return spent


if __name__ == "__main__":
    main()
