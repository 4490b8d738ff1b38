"""The processes that train one model together: each with its share of every batch, all with the same weights.

A batch is split among them, and their gradients are added, each weighted by its share. So many processes then take the
steps that one would take with the whole batch; `batch_size` means the same with any number of them.
"""

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn

from leapts.errors import ConfigError, WorkerLostError
from leapts.training.launcher import bind_to_loopback, is_distributed


class Workers(Protocol):
    """The seam between the loop and the processes around it; they all call the same methods in the same order."""

    rank: int  # of this process; the first, 0, writes what there is to write
    size: int

    def share(self, count: int) -> slice:
        """Which of so many things are this process's to do."""

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """The sum of every process's values."""

    def all_reduce_mean(self, loss: Tensor, parameters: Iterable[nn.Parameter], weight: float) -> float:
        """Bring loss and gradients to those of the whole batch, of which this process did the share `weight`."""

    def broadcast(self, content: bytes) -> bytes:
        """What the first process has; the others' is ignored."""


class SingleProcess:
    """One process that does everything."""

    rank, size = 0, 1

    def share(self, count: int) -> slice:
        """All of it."""
        return slice(0, count)

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """What it has."""
        return values

    def all_reduce_mean(self, loss: Tensor, parameters: Iterable[nn.Parameter], weight: float) -> float:  # noqa: ARG002
        """They are those of the whole batch."""
        return loss.item()

    def broadcast(self, content: bytes) -> bytes:
        """What it has."""
        return content


class ProcessGroup:
    """The processes of torch's initialised process group, whoever initialised it."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        # The model is in main memory, which not every backend can reach.
        self._group = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")

    def share(self, count: int) -> slice:
        """A run of neighbours; shares differ in size by one at most."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """The sum of every process's values, in place."""
        self._met(lambda: dist.all_reduce(values, group=self._group))
        return values

    def all_reduce_mean(self, loss: Tensor, parameters: Iterable[nn.Parameter], weight: float) -> float:
        """Add up weighted gradients and losses, in one message."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([loss.detach().view(1), *(gradient.view(-1) for gradient in gradients)]) * weight
        self.all_reduce_sum(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, whole in zip(gradients, flat[1:].split(sizes), strict=True):
            gradient.copy_(whole.view_as(gradient))
        return float(flat[0])

    def broadcast(self, content: bytes) -> bytes:
        """The first process's bytes, its length sent ahead."""
        mine = content if self.rank == 0 else b""
        message = torch.frombuffer(bytearray(mine or b"\0"), dtype=torch.uint8)
        length = int(self.all_reduce_sum(torch.tensor(len(mine))))
        if self.rank:
            message = torch.zeros(max(length, 1), dtype=torch.uint8)
        return self.all_reduce_sum(message).numpy().tobytes()[:length]

    def _met(self, communicate: Callable[[], object]) -> None:
        try:
            communicate()
        except RuntimeError as error:
            raise WorkerLostError("another process of this run ended") from error


def current_workers() -> Workers:
    """Those of the process group this process is in, if it is in one."""
    return ProcessGroup() if dist.is_available() and dist.is_initialized() else SingleProcess()


def require_same(workers: Workers, digest: bytes) -> None:
    """Refuse processes that were started on different things.

    Args:
        workers: The processes.
        digest: Of the options and the data, as this process has them.

    Raises:
        ConfigError: On every process, with the ones that differ from the first.
    """
    table = torch.zeros(workers.size, len(digest), dtype=torch.uint8)
    table[workers.rank] = torch.frombuffer(bytearray(digest), dtype=torch.uint8)
    table = workers.all_reduce_sum(table)
    others = (table != table[:1]).any(1).nonzero().view(-1).tolist()
    if others:
        ranks = ", ".join(map(str, others))
        raise ConfigError(
            f"the processes of this run differ in their options or data: rank {ranks} from rank 0; "
            "start all of them on the same file with the same options"
        )


@contextmanager
def joined_workers() -> Iterator[Workers]:
    """The workers a launcher such as torchrun started this process among, for as long as the block lasts.

    A process group that is there already is taken and left as it is.

    Raises:
        WorkerLostError: In the block, when another process is gone or the launcher asks this one to stop.
    """
    if not dist.is_available() or dist.is_initialized() or not is_distributed():
        yield current_workers()
        return
    bind_to_loopback()
    try:
        dist.init_process_group("gloo")
    except RuntimeError as error:
        raise WorkerLostError("the processes of this run did not find each other") from error
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield ProcessGroup()
    finally:
        signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()


def _stop(*_: object) -> None:
    """A launcher ends the others when one is gone; whichever is noticed first, the reason is the same."""
    raise WorkerLostError("this process was asked to stop, because another one ended or the run was called off")
