"""HTTP connections with limits on time and on bytes that are not body."""

import asyncio
from typing import Any, ClassVar

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 65_536  # of a request's headers, of its trailers, or between two parts of its body
_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class LimitedProtocol(HttpToolsProtocol):
    """Close connections that send headers too slowly or too long, or do not read the response.

    uvicorn limits only the idle time between requests, and httptools has no limits. Trailers are dropped: uvicorn would
    add them to the headers, after the headers were checked. The time limit on bodies is in `request_body`.
    """

    header_seconds: ClassVar[float]  # set by the server
    response_seconds: ClassVar[float]  # set by the server
    _header_timer: asyncio.TimerHandle | None = None  # runs while the headers of a request are awaited
    _response_timer: asyncio.TimerHandle | None = None  # runs while part of a response is unread
    _header_bytes = 0  # received since the last end of headers, part of a body, or end of a request
    _has_advanced = False
    _in_body = False

    def connection_made(self, transport: Any) -> None:
        """Start the timer for the first request's headers."""
        super().connection_made(transport)
        self._start_header_timer()

    def data_received(self, data: bytes) -> None:
        """Parse data, and close the connection if it sends nothing but headers or trailers."""
        self._has_advanced = False
        super().data_received(data)
        if self._header_timer is None and self.cycle and self.cycle.response_complete:
            # Blank lines, or the rest of a body whose response is sent: data that began no request ended the idle time.
            self._start_header_timer()
        self._header_bytes = 0 if self._has_advanced else self._header_bytes + len(data)
        if self._header_bytes > MAX_HEADER_BYTES and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
                self.transport.write(_TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Start the timer for a request's headers."""
        super().on_message_begin()
        if self._header_timer is None:
            self._start_header_timer()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; drop a trailer."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the timer, and start the request."""
        self._stop_header_timer()
        self._in_body = self._has_advanced = True
        if not self.url.startswith(b"/"):
            self._take_host_of_url()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._has_advanced = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        """End the request."""
        self._in_body, self._has_advanced = False, True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the timer for the client to read the response."""
        self._watch_reading()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """Restart the timer: the client reads."""
        super().resume_writing()
        self._stop_response_timer()
        self._watch_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all timers."""
        self._stop_header_timer()
        self._stop_response_timer()
        super().connection_lost(exc)

    def _take_host_of_url(self) -> None:
        """Put the host of an absolute URL in the place of the header Host, as RFC 9112 (3.2.2) demands."""
        host = httptools.parse_url(self.url).host or b""
        others = [(name, value) for name, value in self.headers if name != b"host"]
        hosts = max(1, len(self.headers) - len(others))  # two stay two, and are refused
        self.headers[:] = [*others, *[(b"host", host)] * hosts]

    def _start_header_timer(self) -> None:
        self._header_timer = self.loop.call_later(self.header_seconds, self._give_up)

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _give_up(self) -> None:
        self._header_timer = None
        if not self.transport.is_closing():
            self.transport.close()

    def _watch_reading(self) -> None:
        if not self.transport.get_write_buffer_size():
            self._stop_response_timer()
        elif self._response_timer is None:
            self._response_timer = self.loop.call_later(self.response_seconds, self.transport.abort)

    def _stop_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None
