"""Small passes through a model, recorded once and replayed without Python.

A pass over a few windows is hundreds of short operations, and between each two of them Python takes as long as the
operation, and gives way to other threads. Replayed, the pass is one call that leaves Python alone. Shapes are part of a
recording, so there is one for each of a few sizes, and a batch is filled up to the next.
"""

import time
import warnings

import torch
from jaxtyping import Float
from torch import Tensor

from leapts.core import LeapTSModel

MOST_ROWS = 512  # windows of single variates; beyond, leaving out what is done pays more than leaving out Python
_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 128, 256, 512)
_WARM_UP = 3  # calls until the replay is optimised
_MOMENT = 0.005  # seconds of processor time that others may be kept waiting for a pass


class ReplayedPasses:
    """The dense execution of a model, for batches of up to so many windows. Forecasts only; it records no leaps.

    Attributes:
        quick_rows: Up to how many windows of single variates a pass is over in a moment.
        row_seconds: Processor time for each of them, in a pass of many.
    """

    def __init__(self, model: LeapTSModel, variates: int) -> None:
        """Records the passes, which takes a moment for each size.

        Args:
            model: What to record. It must not change afterwards, and must not draw random numbers in a pass.
            variates: In each window.
        """
        self._variates = variates
        most = MOST_ROWS // variates
        self._sizes = [size for size in _SIZES if size <= most]
        self._passes = {size: _recorded(model, size, variates) for size in self._sizes}
        examples = {size: _example(model, size, variates) for size in self._sizes}
        seconds = {size: self._seconds(example) for size, example in examples.items()}
        self.quick_rows = variates * max((size for size in self._sizes if seconds[size] <= _MOMENT), default=0)
        self.row_seconds = min((seconds[size] / (size * variates) for size in self._sizes), default=0.0)

    def __call__(
        self, windows: Float[Tensor, "batch variates lookback"]
    ) -> Float[Tensor, "batch variates horizon"] | None:
        """The forecasts; None for more windows than there are recordings for."""
        count = windows.shape[0]
        size = next((size for size in self._sizes if size >= count), None)
        if size is None or windows.shape[1] != self._variates:
            return None
        if size > count:
            windows = torch.cat([windows, windows[:1].expand(size - count, -1, -1)])
        with torch.inference_mode():
            forecasts: Tensor = self._passes[size](windows)
        return forecasts[:count]

    def _seconds(self, example: Float[Tensor, "batch variates lookback"]) -> float:
        """What a pass costs: the least of some tries, for something else may have run in between."""
        tries = []
        for _ in range(_WARM_UP):
            started = time.thread_time()
            self(example)
            tries.append(time.thread_time() - started)
        return min(tries)


def _example(model: LeapTSModel, size: int, variates: int) -> Tensor:
    return torch.zeros(size, variates, model.shape.lookback, dtype=torch.float32)


def _recorded(model: LeapTSModel, size: int, variates: int) -> torch.jit.ScriptModule:
    example = _example(model, size, variates)
    with warnings.catch_warnings(), torch.no_grad():
        # That the shape is checked only while recording is what is wanted; and what torch recommends instead of this
        # way of recording takes minutes.
        warnings.simplefilter("ignore")
        recorded: torch.jit.ScriptModule = torch.jit.freeze(torch.jit.trace(model.eval(), example, check_trace=False))
    with torch.inference_mode():
        for _ in range(_WARM_UP):
            recorded(example)
    return recorded
