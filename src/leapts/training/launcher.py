"""Environment variables of a launcher such as torchrun, which starts several processes for one run."""

import os
import socket

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LOOPBACK = ("lo", "lo0")  # on Linux and macOS


def is_distributed() -> bool:
    """Check whether a launcher started this process as one of several."""
    return all(name in os.environ for name in _VARIABLES) and int(os.environ["WORLD_SIZE"]) > 1


def is_first() -> bool:
    """Check whether this process prints and writes: the only one, or rank 0."""
    return not is_distributed() or os.environ["RANK"] == "0"


def bind_to_loopback() -> None:
    """Make processes that are all on this machine connect over the loopback interface.

    Otherwise they would listen on the address of the host name, which other machines can reach. An interface that the
    user has set is kept.
    """
    if os.environ.get("LOCAL_WORLD_SIZE") != os.environ["WORLD_SIZE"]:
        return
    present = {name for _, name in socket.if_nameindex()}
    for name in _LOOPBACK:
        if name in present:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
