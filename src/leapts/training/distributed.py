"""Data-parallel training: every process has the same weights and computes its share of every batch.

The gradients of the processes are added, each weighted by its share of the batch. The steps equal those of one process
with the whole batch, so `batch_size` means the same for any number of processes.
"""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor, nn

from leapts.errors import ConfigError, WorkerLostError
from leapts.training.launcher import bind_to_loopback, is_distributed


class SingleProcess:
    """Collective operations of the training loop, for one process; all processes call them in the same order."""

    rank, size = 0, 1  # rank 0 writes files

    def share(self, count: int) -> slice:
        """Return the consecutive items, of `count`, that this process handles; shares differ by one item at most."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """Sum the values of all processes, in place."""
        return values

    def all_reduce_mean(self, loss: Tensor, parameters: Iterable[nn.Parameter], weight: float) -> float:  # noqa: ARG002
        """Replace gradients by those of the whole batch, and return its loss; `weight` is this process's share."""
        return loss.item()

    def broadcast(self, content: bytes) -> bytes:
        """Return the content of rank 0; that of other ranks is ignored."""
        return content


Workers = SingleProcess  # the operations, which ProcessGroup overrides


class ProcessGroup(SingleProcess):
    """Training in the processes of torch's default process group."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        # The model is in main memory, which some backends cannot access.
        self._group = None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")

    def all_reduce_sum(self, values: Tensor) -> Tensor:
        """Sum the values of all processes, in place."""
        try:
            dist.all_reduce(values, group=self._group)
        except RuntimeError as error:
            raise WorkerLostError("another process of this run ended") from error
        return values

    def all_reduce_mean(self, loss: Tensor, parameters: Iterable[nn.Parameter], weight: float) -> float:
        """Sum weighted gradients and losses in one message."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        flat = torch.cat([loss.detach().view(1), *(gradient.view(-1) for gradient in gradients)]) * weight
        self.all_reduce_sum(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, whole in zip(gradients, flat[1:].split(sizes), strict=True):
            gradient.copy_(whole.view_as(gradient))
        return float(flat[0])

    def broadcast(self, content: bytes) -> bytes:
        """Send the number of bytes of rank 0, then the bytes."""
        mine = content if self.rank == 0 else b""
        message = torch.frombuffer(bytearray(mine or b"\0"), dtype=torch.uint8)
        length = int(self.all_reduce_sum(torch.tensor(len(mine))))
        if self.rank:
            message = torch.zeros(max(length, 1), dtype=torch.uint8)
        return self.all_reduce_sum(message).numpy().tobytes()[:length]


def current_workers() -> Workers:
    """Return the current process group, or a single process without one."""
    return ProcessGroup() if dist.is_available() and dist.is_initialized() else SingleProcess()


def require_same(workers: Workers, digest: bytes) -> None:
    """Refuse processes with different digests of options and data.

    Raises:
        ConfigError: On every process, with the ranks that differ from rank 0.
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
    """Join the process group of a launcher such as torchrun for the duration of the block.

    An existing process group is used and left open.

    Raises:
        WorkerLostError: In the block, when another process ended or the launcher stops this one.
    """
    if not dist.is_available() or dist.is_initialized() or not is_distributed():
        yield current_workers()
        return
    bind_to_loopback()
    try:
        dist.init_process_group("gloo")
    except RuntimeError as error:
        raise WorkerLostError("the processes of this run could not connect to each other") from error
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        yield ProcessGroup()
    finally:
        signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()


def _stop(*_: object) -> None:
    """Handle SIGTERM, which a launcher sends to the other processes when one has ended."""
    raise WorkerLostError("this process was asked to stop, because another one ended or the run was cancelled")
