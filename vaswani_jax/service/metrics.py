"""Count what a server does, for Prometheus."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import prometheus_client
from prometheus_client import core
from prometheus_client.registry import Collector

from vaswani_jax.service.figures import Figures

CONTENT_TYPE = prometheus_client.CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
# Of each model: the field of `Figures`, and what it counts.
COUNTERS = {
    "batches": "Batches that were computed",
    "sentences": "Sentences in batches",
    "rows": "Rows of batches, with those of padding",
    "tokens": "Source tokens in batches",
    "padded_tokens": "Source tokens in batches, with those of padding",
    "failures": "Batches that failed",
    "refused": "Sentences that came to a full queue, or while the server stopped",
    "late": "Sentences whose request took too long",
    "cancelled": "Sentences dropped as their client left, or their request failed",
    "busy_seconds": "Seconds that batches took to compute, the sum over threads",
    "waited_seconds": "Seconds that sentences waited for their batch",
}
GAUGES = {
    "waiting": "Sentences that wait for a batch",
    "running": "Sentences in the batches that are computed",
}


class Metrics:
    """The figures of a server since its start."""

    def __init__(self, figures: Callable[[], Mapping[str, Figures]]) -> None:
        """Begin to count.

        Args:
            figures: Returns the figures of each model.
        """
        self._registry = prometheus_client.CollectorRegistry()
        self._requests = prometheus_client.Counter(
            "vaswani_requests",
            "Requests that were answered",
            ["route", "status"],
            registry=self._registry,
        )
        self._seconds = prometheus_client.Histogram(
            "vaswani_request_seconds",
            "Seconds from a request's arrival to the end of its answer",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._in_progress = prometheus_client.Gauge(
            "vaswani_requests_in_progress",
            "Requests that are not answered yet",
            registry=self._registry,
        )
        prometheus_client.ProcessCollector(registry=self._registry)
        self._registry.register(_Figures(figures))

    def begin(self) -> None:
        """Count a request that has arrived."""
        self._in_progress.inc()

    def end(self, *, route: str, status: int, seconds: float) -> None:
        """Count the answer to a request.

        Args:
            route: The path of the route, which has no text of the request.
            status: The status of the answer; 499 if the client went away.
            seconds: How long it took.
        """
        self._in_progress.dec()
        self._requests.labels(route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """Return all figures in Prometheus's text format."""
        return prometheus_client.generate_latest(self._registry)


class _Figures(Collector):
    """Reads the figures of models when Prometheus asks for them."""

    def __init__(self, figures: Callable[[], Mapping[str, Figures]]) -> None:
        self._figures = figures

    def describe(self) -> Iterable[core.Metric]:
        """Return nothing: the names are not checked when it is registered."""
        return []

    def collect(self) -> Iterator[core.Metric]:
        """Yield the figures of each model."""
        counters = {
            field: core.CounterMetricFamily(f"vaswani_{field}", text, labels=["model"])
            for field, text in COUNTERS.items()
        }
        gauges = {
            field: core.GaugeMetricFamily(f"vaswani_{field}", text, labels=["model"])
            for field, text in GAUGES.items()
        }
        for name, figures in self._figures().items():
            for field, counter in counters.items():
                counter.add_metric([name], float(getattr(figures, field)))
            for field, gauge in gauges.items():
                gauge.add_metric([name], float(getattr(figures, field)))
        yield from counters.values()
        yield from gauges.values()
