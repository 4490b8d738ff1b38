"""Connections that do not wait for ever, and do not write twice."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from leapts.serve.intake import WHOLE


class ImpatientProtocol(HttpToolsProtocol):
    """Closes connections that do not say what they want.

    The server underneath gives up on idle connections between requests alone; a caller that sends its headers one by
    one could hold a connection for ever. Bodies have a time limit of their own.
    """

    seconds: ClassVar[float]  # given by the server
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait, but not for ever."""
        super().connection_made(_Joined(transport))  # type: ignore[arg-type]
        self._wait()

    def on_message_begin(self) -> None:
        """A request begins: its headers have so long to come."""
        super().on_message_begin()
        if self._patience is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """It is known what the caller wants."""
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is here."""
        self.scope[WHOLE] = True  # type: ignore[literal-required]
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is out; one without a body, too."""
        self.transport.flush()  # type: ignore[attr-defined]
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller has gone."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._patience = self.loop.call_later(self.seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        if not self.transport.is_closing():
            self.transport.close()


class _Joined:
    """A transport that keeps the head of an answer until its body comes.

    The server underneath writes them one by one, which costs a system call more, and has the caller wake up for a head
    it can do nothing with.
    """

    def __init__(self, inner: asyncio.Transport) -> None:
        self._inner = inner
        self._head = b""

    def write(self, data: bytes) -> None:
        """Write, unless a body is to follow."""
        if self._inner.is_closing():  # nobody reads it any more
            self._head = b""
            return
        is_head = data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n")
        if is_head and not data.startswith(b"HTTP/1.1 100 "):
            self._head = data
        else:
            self._inner.write(self._head + data)
            self._head = b""

    def flush(self) -> None:
        """Write what was kept."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Close, once all is written."""
        self.flush()
        self._inner.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
