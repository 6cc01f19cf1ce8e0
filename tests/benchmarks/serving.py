"""`vaswani serve` under load, beside CTranslate2 behind the same framework.

    python -m tests.benchmarks.serving --run=RUN --ctranslate2=DIR --input=FILE

DIR is what `vaswani export --format=ctranslate2` has written of the run. The tool that
makes the load is `wrk` (Debian has it); it, the servers and an offline decoder of the
same lines take turns on the same cores, all of them warm. What other programs disturb
is repeated. With `--faults=N` it sends N requests instead, some of them malformed, too
long or given up, and compares every answer with offline decoding. The last line that
it prints is JSON.

The peer is a FastAPI application that hands each request to `translate_batch`. Run
this file with `--peer` or `--offline` to start these parts by hand.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import functools
import itertools
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")
HERE = "tests.benchmarks.serving"
WARM_SECONDS = 3
# wrk calls these functions; it prints nothing else that is read.
LUA = """
local bodies, index = {}, 0
for line in io.lines("BODIES") do bodies[#bodies + 1] = line end
local headers = { ["Content-Type"] = "application/json" }
request = function()
  index = index % #bodies + 1
  return wrk.format("POST", nil, headers, bodies[index])
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "seconds": %f, "median": %f, "p95": %f, "p99": %f, ' ..
    '"bad": %d}\\n', summary.requests, summary.duration / 1e6,
    latency:percentile(50) / 1e3, latency:percentile(95) / 1e3,
    latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclasses.dataclass(frozen=True)
class Load:
    """What the tool measured; latencies in milliseconds.

    Attributes:
        sentences: Sentences a second.
        median: Of the latencies.
        p95: Their 95th percentile.
        p99: Their 99th percentile.
        bad: Requests without a good answer.
        tool_cpu: The share of a core that the tool took.
        server_cpu: The cores that the server took.
    """

    sentences: float
    median: float
    p95: float
    p99: float
    bad: int
    tool_cpu: float
    server_cpu: float


def offline(arguments: argparse.Namespace) -> None:
    """Translate all lines, or each alone, whenever a line of standard input says so."""
    import vaswani_jax
    from vaswani_jax.core import compilation_cache

    compilation_cache.enable()
    translator = vaswani_jax.load(arguments.run)
    lines = arguments.input.read_text(encoding="utf-8").splitlines()
    texts = translator.translate(lines)
    alone = random.Random(0).sample(lines, min(arguments.alone, len(lines)))
    for line in alone:
        translator.translate([line])
    print(json.dumps(texts), flush=True)
    for command in sys.stdin:
        if command.strip() == "all":
            begin, cpu = time.perf_counter(), time.process_time()
            translator.translate(lines)
            seconds = time.perf_counter() - begin
            cores = (time.process_time() - cpu) / seconds
            answer: Any = [len(lines) / seconds, cores]
        else:
            answer = []
            for line in alone:
                begin = time.perf_counter()
                translator.translate([line])
                answer.append((time.perf_counter() - begin) * 1e3)
        print(json.dumps(answer), flush=True)


def peer(arguments: argparse.Namespace) -> None:
    """Serve CTranslate2; each request is a call of its own."""
    import ctranslate2
    import fastapi
    import pydantic
    import sentencepiece
    import uvicorn

    subwords = sentencepiece.SentencePieceProcessor(
        model_file=str(arguments.ctranslate2 / "source.spm")
    )
    # One thread each computes a small batch fastest on two shared cores.
    translator = ctranslate2.Translator(
        str(arguments.ctranslate2),
        compute_type="float32",
        inter_threads=2,
        intra_threads=1,
    )
    application = fastapi.FastAPI()

    class Body(pydantic.BaseModel):
        text: str | list[str]

    @application.post("/v1/translate")
    def translate(body: Body) -> dict[str, list[dict[str, Any]]]:
        lines = [body.text] if isinstance(body.text, str) else body.text
        results = translator.translate_batch(
            subwords.encode(lines, out_type=str), beam_size=4, length_penalty=0.6
        )
        return {
            "results": [
                {"text": subwords.decode(result.hypotheses[0])} for result in results
            ]
        }

    @application.on_event("startup")
    async def announce() -> None:
        print(f"http://127.0.0.1:{arguments.port}", flush=True)

    uvicorn.run(
        application,
        host="127.0.0.1",
        port=arguments.port,
        http="httptools",
        access_log=False,
        log_level="error",
    )


@contextlib.contextmanager
def running(command: Sequence[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a program; yield it and the first line that it prints."""
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().strip().rstrip("/")
    finally:
        process.terminate()
        process.wait()


def ask(process: subprocess.Popen[str], command: str) -> Any:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(f"{command}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def cpu_seconds(pid: int) -> float:
    """Return what a process has taken of all cores."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def busy_seconds() -> float:
    """Return what all programs have taken of all cores."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    ticks = [int(field) for field in fields]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


class Quiet:
    """Repeats what other programs disturb, while there is time.

    Attributes:
        disturbed: How many measurements were repeated.
        others: The cores that other programs took during those that count.
    """

    def __init__(self, *, most: float, until: float, pids: Sequence[int]) -> None:
        """Keep the rule.

        Args:
            most: The most cores that other programs may take.
            until: When the last measurement counts, as it is.
            pids: The processes that belong to the measurement.
        """
        self._most = most
        self._until = until
        self._pids = pids
        self.disturbed = 0
        self.others: list[float] = []

    def measure(self, function: Callable[[], Result]) -> Result:
        """Return the first undisturbed result."""
        while True:
            begin, all_busy, busy = time.monotonic(), busy_seconds(), self._busy()
            result = function()
            seconds = time.monotonic() - begin
            busy = self._busy() - busy
            others = (busy_seconds() - all_busy - busy) / seconds
            if others <= self._most or time.monotonic() > self._until:
                self.others.append(round(others, 3))
                return result
            self.disturbed += 1

    def _busy(self) -> float:
        """Return what this process, its servers and the tool have taken."""
        own = os.times()
        mine = own.user + own.system + own.children_user + own.children_system
        return mine + sum(map(cpu_seconds, self._pids))


def resident_megabytes(pid: int) -> float:
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def load(
    url: str,
    bodies: pathlib.Path,
    *,
    pid: int,
    point: tuple[int, int],
    seconds: int,
) -> Load:
    """Return what clients see that ask as fast as they are answered.

    Args:
        url: The server's.
        bodies: A file of requests, one a line.
        pid: The server's process.
        point: The number of clients, and of the lines of a request.
        seconds: How long they ask.
    """
    clients, lines = point
    script = bodies.with_suffix(".lua")
    script.write_text(LUA.replace("BODIES", str(bodies)), encoding="utf-8")
    server_cpu = cpu_seconds(pid)
    process = subprocess.Popen(
        [
            *("wrk", "-t1", f"-c{clients}", f"-d{seconds}s", "--timeout=60s"),
            *("-s", str(script), f"{url}/v1/translate"),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    server_cpu = cpu_seconds(pid) - server_cpu
    [result] = [line for line in output.splitlines() if line.startswith("RESULT ")]
    found = json.loads(result.removeprefix("RESULT "))
    return Load(
        sentences=found["requests"] * lines / found["seconds"],
        median=found["median"],
        p95=found["p95"],
        p99=found["p99"],
        bad=found["bad"],
        tool_cpu=(usage.ru_utime + usage.ru_stime) / found["seconds"],
        server_cpu=server_cpu / found["seconds"],
    )


def write_bodies(path: pathlib.Path, lines: Sequence[str], *, number: int) -> None:
    """Write the bodies of requests of a number of lines, in a fixed random order."""
    order = list(lines)
    random.Random(0).shuffle(order)
    groups = [order[i : i + number] for i in range(0, len(order) - number + 1, number)]
    bodies = [group[0] if number == 1 else group for group in groups]
    path.write_text(
        "".join(json.dumps({"text": body}) + "\n" for body in bodies), encoding="utf-8"
    )


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the measurements of all points, the median of the rounds."""
    points = list(itertools.product(arguments.clients, arguments.lines))
    lines = arguments.input.read_text(encoding="utf-8").splitlines()
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for number in arguments.lines:
            write_bodies(folder / f"{number}.json", lines, number=number)
        servers = {
            "vaswani": stack.enter_context(running(serve_command(arguments))),
        }
        if arguments.ctranslate2:
            servers["CTranslate2"] = stack.enter_context(
                running(own_command("peer", arguments))
            )
        decoder, _ = stack.enter_context(running(own_command("offline", arguments)))
        speeds, cores, alone = [], [], []
        loads: dict[tuple[str, tuple[int, int]], list[Load]] = {}
        # The latency of a server by that of the search alone, which was timed before.
        ratios: dict[tuple[str, tuple[int, int]], list[float]] = {}
        for process, url in servers.values():
            for number in arguments.lines:
                load(
                    *(url, folder / f"{number}.json"),
                    pid=process.pid,
                    point=(8, number),
                    seconds=WARM_SECONDS,
                )
        quiet = Quiet(
            most=arguments.others,
            until=time.monotonic() + 60 * arguments.minutes,
            pids=[decoder.pid, *(process.pid for process, _ in servers.values())],
        )
        for _ in range(arguments.rounds):
            for point in points:
                speed, used = quiet.measure(lambda: ask(decoder, "all"))
                speeds.append(speed)
                cores.append(used)
                each = quiet.measure(lambda: ask(decoder, "alone"))
                alone.append(statistics.median(each))
                for server, (process, url) in servers.items():
                    ask_server = functools.partial(
                        load,
                        *(url, folder / f"{point[1]}.json"),
                        pid=process.pid,
                        point=point,
                        seconds=arguments.seconds,
                    )
                    found = quiet.measure(ask_server)
                    loads.setdefault((server, point), []).append(found)
                    ratio = found.median / alone[-1]
                    ratios.setdefault((server, point), []).append(ratio)
                    print(server, point, found, f"offline {speed:.1f}", flush=True)
    result: dict[str, Any] = {
        "offline_sentences": round(statistics.median(speeds), 1),
        "offline_cores": round(statistics.median(cores), 2),
        "search_median_ms": round(statistics.median(alone), 2),
        "disturbed": quiet.disturbed,
        "cores_of_others": max(quiet.others),
        "points": [],
    }
    for point in points:
        row: dict[str, Any] = {"clients": point[0], "lines": point[1]}
        for server in servers:
            all_loads = [dataclasses.asdict(each) for each in loads[server, point]]
            row[server] = {
                name: round(statistics.median(each[name] for each in all_loads), 3)
                for name in all_loads[0]
            }
            sentences = statistics.median(each["sentences"] for each in all_loads)
            row[server] |= {
                "of_offline": round(sentences / statistics.median(speeds), 3),
                "of_search_alone": round(statistics.median(ratios[server, point]), 3),
            }
        result["points"].append(row)
    return result


def serve_command(arguments: argparse.Namespace) -> list[str]:
    return [
        *(sys.executable, "-m", "vaswani_jax.serve", f"--models={arguments.run}"),
        *("--port=0", *arguments.flags),
    ]


def own_command(part: str, arguments: argparse.Namespace) -> list[str]:
    return [
        *(sys.executable, "-m", HERE, f"--{part}", f"--run={arguments.run}"),
        *(f"--input={arguments.input}", f"--ctranslate2={arguments.ctranslate2}"),
        f"--alone={arguments.alone}",
    ]


@dataclasses.dataclass
class Faults:
    """What became of the requests of each kind, and the server's memory."""

    sent: dict[str, int] = dataclasses.field(default_factory=dict)
    answered: dict[str, int] = dataclasses.field(default_factory=dict)
    wrong: list[str] = dataclasses.field(default_factory=list)
    megabytes: list[float] = dataclasses.field(default_factory=list)


KINDS = ("good", "good", "good", "malformed", "too long", "given up")


async def send_faults(
    url: str, lines: Sequence[str], texts: Sequence[str], *, number: int, pid: int
) -> Faults:
    """Send requests of all kinds from 32 clients, and compare the answers."""
    host, port = url.removeprefix("http://").split(":")
    faults = Faults()
    numbers = iter(range(number))

    async def client(seed: int) -> None:
        draw = random.Random(seed)
        connection: Any = None
        for count in numbers:
            if count % 1000 == 0:
                faults.megabytes.append(round(resident_megabytes(pid), 1))
            kind = draw.choice(KINDS)
            place = draw.randrange(len(lines))
            body = json.dumps({"text": lines[place]}).encode()
            if kind == "malformed":
                body = body[: draw.randrange(len(body))]
            elif kind == "too long":
                body = json.dumps({"text": "a" * 30_000}).encode()
            faults.sent[kind] = faults.sent.get(kind, 0) + 1
            if connection is None:
                connection = await asyncio.open_connection(host, int(port))
            reader, writer = connection
            writer.write(
                b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Type: application/json\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body)
            )
            writer.write(body)
            await writer.drain()
            if kind == "given up":
                await asyncio.sleep(draw.random() * 0.02)
                writer.close()
                connection = None
                continue
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].split()[0])
            answer = json.loads(await reader.readexactly(length))
            status = int(head.split()[1])
            is_right = 400 <= status < 500
            if kind == "good":
                is_right = status == 200
                if is_right:
                    [result] = answer["results"]
                    is_right = result["translations"][0]["text"] == texts[place]
            faults.answered[kind] = faults.answered.get(kind, 0) + 1
            if not is_right:
                faults.wrong.append(f"{kind}: {status} {str(answer)[:200]}")
            if "connection: close" in head:
                writer.close()
                connection = None
        if connection is not None:
            connection[1].close()

    await asyncio.gather(*(client(seed) for seed in range(32)))
    faults.megabytes.append(round(resident_megabytes(pid), 1))
    return faults


def measure_faults(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what became of requests with faults among them."""
    with (
        running(serve_command(arguments)) as (server, url),
        running(own_command("offline", arguments)) as (_, texts),
    ):
        lines = arguments.input.read_text(encoding="utf-8").splitlines()
        # The offline decoder translates each line as it is, the server each sentence.
        faults = asyncio.run(
            send_faults(
                *(url, lines, json.loads(texts)),
                number=arguments.faults,
                pid=server.pid,
            )
        )
    return dataclasses.asdict(faults)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", required=True)
    parser.add_argument("--input", type=pathlib.Path, required=True)
    parser.add_argument("--ctranslate2", type=pathlib.Path)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--lines", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--seconds", type=int, default=10, help="of each load")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--others", type=float, default=0.15, help="most cores")
    parser.add_argument("--minutes", type=float, default=20, help="then none repeats")
    parser.add_argument("--alone", type=int, default=50, help="lines timed alone")
    parser.add_argument("--port", type=int, default=8977, help="of the peer")
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--offline", action="store_true")
    parser.add_argument("--peer", action="store_true")
    parser.add_argument("flags", nargs="*", help="of vaswani serve")
    arguments = parser.parse_args()
    if arguments.offline:
        offline(arguments)
    elif arguments.peer:
        peer(arguments)
    elif arguments.faults:
        print(json.dumps(measure_faults(arguments)))
    else:
        print(json.dumps(measure(arguments), indent=1))


if __name__ == "__main__":
    main()
