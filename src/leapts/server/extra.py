"""Whether what the server is built on is installed."""

from importlib.util import find_spec

_NEEDED = ("fastapi", "msgspec", "uvicorn", "httptools")


def require_extra() -> None:
    """Say how to get what is missing.

    Raises:
        ImportError: When something is.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        raise ImportError("the server needs: pip install 'leapts[serve]'")
