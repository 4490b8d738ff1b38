"""Keep freed memory in the process: asking the system for the same pages again and again is slow."""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt in glibc
_KEPT_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Let malloc keep blocks of up to 1 GB for the next array; does nothing where malloc is not that of glibc."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
