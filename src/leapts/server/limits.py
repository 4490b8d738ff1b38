"""Limits on one request and on all requests together."""

from dataclasses import dataclass

from leapts.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Sizes, counts and times above which a request is refused."""

    body: int = 8_000_000  # bytes of one request body
    # Bytes of all request bodies being received, so that many slow clients cannot fill the memory.
    bodies: int = 32_000_000
    series: int = 2_000  # series in one request
    length: int = 100_000  # values in one series
    sampled: int = 200_000  # values of all sample paths in one response
    answered: int = 2_000_000  # values of all forecasts, intervals and quantiles in one response
    concurrency: int = 128  # forecasts in progress or waiting; further requests get status 503
    tables: int = 4  # same for CSV forecasts and reports, which take longer
    # Seconds of work that may be queued before a request; more if one recent request alone took longer.
    wait: float = 0.005
    seconds: float = 30.0  # time to receive a request, to answer it, and for the client to read the response
    header_seconds: float = 10.0  # time for a connected client to send the headers of a request

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigError(f"{name}={value}: the limit must be greater than 0")
        if self.bodies < self.body:
            raise ConfigError(f"bodies={self.bodies}: the limit for all requests must be at least body={self.body}")
