"""Whether a launcher such as torchrun started this process among others, as it tells through the environment."""

import os

_TOLD = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def is_among_others() -> bool:
    """Whether this process was started as one of several that work together."""
    return all(name in os.environ for name in _TOLD) and int(os.environ["WORLD_SIZE"]) > 1


def is_first() -> bool:
    """Whether this process is the one that speaks and writes: the only one, or the first of several."""
    return not is_among_others() or os.environ["RANK"] == "0"
