"""Connections that do not wait for ever, and do not write twice."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from leapts.serve.intake import WHOLE

_LONGEST_HEAD = 65_536  # bytes, and what may come with the last of them
_HEAD_TOO_LONG = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class ImpatientProtocol(HttpToolsProtocol):
    """Closes connections that do not say what they want, never come to an end of it, or do not read the answer.

    The server underneath gives up on idle connections between requests alone; a caller that sends its headers one by
    one, or blank lines, or does not read, could hold a connection for ever. Bodies have a time limit of their own.
    """

    seconds: ClassVar[float]  # to say what is wanted; given by the server
    reading_seconds: ClassVar[float]  # to read an answer; given by the server
    _patience: asyncio.TimerHandle | None = None  # while a request's head is waited for
    _unread: asyncio.TimerHandle | None = None  # while an answer, or part of it, is not out
    _head = 0  # bytes of it that have come
    _in_body = False

    def connection_made(self, transport: Any) -> None:
        """Wait, but not for ever."""
        super().connection_made(_Joined(transport))  # type: ignore[arg-type]
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what comes, if it leads anywhere."""
        super().data_received(data)
        if self._patience is None and self.cycle and self.cycle.response_complete:
            # Blank lines, or the rest of a body whose answer is out: it began no request, but ended the idle time.
            self._wait()
        if self._patience is None or self._in_body:
            self._head = 0
            return
        self._head += len(data)
        if self._head > _LONGEST_HEAD and not self.transport.is_closing():
            self.transport.write(_HEAD_TOO_LONG)
            self.transport.close()

    def on_message_begin(self) -> None:
        """A request begins: its headers have so long to come."""
        super().on_message_begin()
        if self._patience is None:
            self._wait()

    def on_headers_complete(self) -> None:
        """It is known what the caller wants."""
        self._stop_waiting()
        self._in_body = True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """All of the request is here."""
        self._in_body = False
        self.scope[WHOLE] = True  # type: ignore[literal-required]
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is out; one without a body, too."""
        self.transport.flush()  # type: ignore[attr-defined]
        self._watch_reading()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """The caller reads."""
        super().resume_writing()
        self._stop_watching()
        self._watch_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller has gone."""
        self._stop_waiting()
        self._stop_watching()
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

    def _watch_reading(self) -> None:
        if not self.transport.get_write_buffer_size():
            self._stop_watching()
        elif self._unread is None:
            self._unread = self.loop.call_later(self.reading_seconds, self.transport.abort)

    def _stop_watching(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None


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
