"""How much one caller, and all of them together, may ask for."""

from dataclasses import dataclass

from leapts.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What is refused beyond.

    Attributes:
        body: Bytes of one request.
        bodies: Bytes of all requests that are being read, so that many slow callers cannot fill the memory.
        series: Series in one request.
        length: Values in one series.
        concurrency: Forecasts that are being made or wait for it; whoever comes then is asked to come again.
        tables: The same for tables and reports, which take longer.
        wait: Seconds of work that may be waiting before a request; more, where a single request makes more.
        seconds: For reading a request, again for answering it, and again for the caller to read what does not fit
            into the buffers on the way.
        header_seconds: For a caller to say what it wants, once connected.
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
                raise ConfigError(f"the limit {name} is {value}; give a number above 0")
        if self.bodies < self.body:
            raise ConfigError(f"all requests together may have {self.bodies} bytes, and one of them {self.body}")
