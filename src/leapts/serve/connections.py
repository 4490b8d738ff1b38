"""Connections that do not wait for ever."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class ImpatientProtocol(HttpToolsProtocol):
    """Closes connections that do not say what they want.

    The server underneath gives up on idle connections between requests alone; a caller that sends its headers one by
    one could hold a connection for ever. Bodies have a time limit of their own.
    """

    seconds: ClassVar[float] = 10.0
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait, but not for ever."""
        super().connection_made(transport)
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
