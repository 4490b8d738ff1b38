"""The server: models behind HTTP, for programs and for people. Needs the extra `serve`."""

from leapts.server.extra import require_extra
from leapts.server.limits import Limits

__all__ = ["Limits", "require_extra"]
