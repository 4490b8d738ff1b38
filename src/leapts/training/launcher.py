"""Whether a launcher such as torchrun started this process among others, as it tells through the environment."""

import os
import socket

_TOLD = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LOOPBACK = ("lo", "lo0")  # as Linux and macOS call it


def is_distributed() -> bool:
    """Whether this process was started as one of several that work together."""
    return all(name in os.environ for name in _TOLD) and int(os.environ["WORLD_SIZE"]) > 1


def is_first() -> bool:
    """Whether this process is the one that speaks and writes: the only one, or the first of several."""
    return not is_distributed() or os.environ["RANK"] == "0"


def bind_to_loopback() -> None:
    """Where all processes are on this computer, have them meet where no other computer can reach them.

    Else they would listen at whatever address this computer's name stands for. Who has chosen an interface keeps it.
    """
    if os.environ.get("LOCAL_WORLD_SIZE") != os.environ["WORLD_SIZE"]:
        return
    there = {name for _, name in socket.if_nameindex()}
    for name in _LOOPBACK:
        if name in there:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", name)
