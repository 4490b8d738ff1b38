"""HTTP server for fitted models, with a web page. Needs the extra `serve`."""

from importlib.util import find_spec

from leapts.server.limits import Limits

__all__ = ["Limits", "require_extra"]

_NEEDED = ("fastapi", "httptools", "prometheus_client", "uvicorn")


def require_extra() -> None:
    """Check that the packages of the extra `serve` are installed.

    Raises:
        ImportError: If one of them is missing.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        raise ImportError("the server needs: pip install 'leapts[serve]'")
