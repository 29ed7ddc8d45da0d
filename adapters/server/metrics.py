"""Metrics of a server, in the text format of Prometheus: counts and durations, and nothing of what users send."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from starlette.responses import Response

from toolgrammar.core.conversation import Usage

from .. import _shared
from .limits import Queue

#: Upper bounds of the histograms, in seconds.
BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)


class Metrics:
    """Counters, gauges and histograms of one server.

    Args:
        queues: the queue of each model.
        reading: the queue of requests that are read.

    Raises:
        MissingDependencyError: prometheus-client is not installed.
    """

    def __init__(self, queues: Mapping[str, Queue], reading: Queue) -> None:
        try:
            import prometheus_client as prometheus
        except ImportError:
            raise _shared.missing("prometheus-client", "server") from None
        self._write = prometheus.generate_latest
        self._media_type = prometheus.CONTENT_TYPE_LATEST
        self._registry = registry = prometheus.CollectorRegistry()
        self._requests = prometheus.Counter(
            "toolgrammar_requests", "Requests.", ["path", "model", "status"], registry=registry
        )
        self._tokens = prometheus.Counter("toolgrammar_tokens", "Tokens.", ["model", "kind"], registry=registry)
        self._cut = prometheus.Counter(
            "toolgrammar_cut_answers", "Answers that the token budget cut.", ["model"], registry=registry
        )
        self._seconds = prometheus.Histogram(
            "toolgrammar_request_seconds", "Duration of requests.", ["path"], registry=registry, buckets=BUCKETS
        )
        self._first = prometheus.Histogram(
            "toolgrammar_first_event_seconds",
            "Time to the first event of a streamed answer.",
            ["model"],
            registry=registry,
            buckets=BUCKETS,
        )
        running = prometheus.Gauge("toolgrammar_running", "Requests that run.", ["model"], registry=registry)
        waiting = prometheus.Gauge("toolgrammar_waiting", "Requests that wait.", ["model"], registry=registry)
        read = prometheus.Gauge("toolgrammar_reading", "Requests that are read.", registry=registry)
        read.set_function(lambda: reading.running)
        for name, queue in queues.items():
            running.labels(name).set_function(partial(getattr, queue, "running"))
            waiting.labels(name).set_function(partial(getattr, queue, "waiting"))

    def request(self, path: str, model: str, status: int, seconds: float) -> None:
        """Count a request; ``model`` is empty if it named none that there is."""
        self._requests.labels(path, model, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def first_event(self, model: str, seconds: float) -> None:
        """Take note of the time to a stream's first event."""
        self._first.labels(model).observe(seconds)

    def answer(self, model: str, usage: Usage, is_cut: bool) -> None:
        """Count the tokens of an answer."""
        kinds = {
            "prompt": usage.prompt_tokens,
            "cached": usage.cached_tokens,
            "completion": usage.completion_tokens,
            "forced": usage.forced_tokens,
        }
        for kind, count in kinds.items():
            self._tokens.labels(model, kind).inc(count)
        if is_cut:
            self._cut.labels(model).inc()

    def response(self) -> Response:
        """Return all of them in the text format."""
        return Response(self._write(self._registry), headers={"Content-Type": self._media_type})
