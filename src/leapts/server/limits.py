"""Limits on one request and on all requests together."""

from dataclasses import dataclass

from leapts.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Sizes, counts and times above which a request is refused.

    Attributes:
        body: Bytes of one request body.
        bodies: Bytes of all request bodies being received, so that many slow clients cannot fill the memory.
        series: Series in one request.
        length: Values in one series.
        concurrency: Forecasts in progress or waiting; further requests get status 503.
        tables: The same for CSV forecasts and reports, which take longer.
        wait: Seconds of work that may be queued before a request; more if one recent request alone took longer.
        seconds: Time to receive a request, to answer it, and for the client to read the response.
        header_seconds: Time for a connected client to send the headers of a request.
    """

    body: int = 8_000_000
    bodies: int = 32_000_000
    series: int = 2_000
    length: int = 100_000
    concurrency: int = 128
    tables: int = 4
    wait: float = 0.005
    seconds: float = 30.0
    header_seconds: float = 10.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value > 0:
                raise ConfigError(f"{name}={value}: the limit must be greater than 0")
        if self.bodies < self.body:
            raise ConfigError(f"bodies={self.bodies}: the limit for all requests must be at least body={self.body}")
