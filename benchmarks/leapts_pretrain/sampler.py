"""Cut batches of training windows from a bank: context at several resolutions, and targets.

The batch of a step depends on the seed, the step and the bank alone: training that resumes at a step sees the batches
that it would have seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leapts_pretrain.augmentations import augmented, with_missing
from leapts_pretrain.bank import Bank, Integers, StoredSeries
from leapts_pretrain.blocks import Block, log_uniform

MIN_CONTEXT, MIN_HORIZON, MAX_HORIZON = 8, 4, 256
MAX_STRIDE = 4
MIN_STRIDED = 128  # values that a series with a stride has left


class Level(NamedTuple):
    """A resolution of the context: so many means over so many steps."""

    steps: int
    cells: int


# From the most recent values to the oldest; each level goes on where the finer one ends.
LEVELS = (Level(1, 512), Level(4, 128), Level(16, 64), Level(64, 16))
REACH = sum(level.steps * level.cells for level in LEVELS)
CELLS = sum(level.cells for level in LEVELS)
RECENT = 1024  # steps of the past in which values go missing


class Batch(NamedTuple):
    """Windows for training. Unknown values are 0, and their place in the mask is 0."""

    context: Block  # [windows, CELLS], the oldest cell first
    observed: Block  # [windows, CELLS], the share of a cell's steps that are known
    target: Block  # [windows, MAX_HORIZON]
    target_observed: Block  # [windows, MAX_HORIZON]


@dataclass(frozen=True, kw_only=True)
class SamplerOptions:
    """Where windows come from, and how they are cut."""

    batch_size: int = 1024
    real_share: float = 0.5
    short_share: float = 0.5  # windows with 16 to 512 values of context at most
    strided_share: float = 0.25
    reversed_share: float = 0.1
    missing_share: float = 0.1
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Sampler:
    """Batches of windows, by step of training."""

    bank: Bank
    options: SamplerOptions = SamplerOptions()

    def batch(self, step: int) -> Batch:
        """Cut the batch of a step of training."""
        rng = np.random.default_rng((self.options.seed, step))
        real = rng.binomial(self.options.batch_size, self.options.real_share)
        synthetic = self.bank.synthetic(step)
        windows = np.full((self.options.batch_size, REACH + MAX_HORIZON), np.nan, np.float32)
        self._cut(rng, windows[:real], [self.bank.real_train])
        self._cut(rng, windows[real:], synthetic)
        augmented(rng, windows)
        self._hide(rng, windows[:, :REACH])
        return batch_of(windows)

    def validation(self, *, real: bool, windows: int) -> Batch:
        """Cut fixed windows of validation, without augmentations."""
        rng = np.random.default_rng((self.options.seed, int(real)))
        block = np.full((windows, REACH + MAX_HORIZON), np.nan, np.float32)
        self._cut(rng, block, [self.bank.real_validation] if real else self.bank.synthetic_validation, plain=True)
        return batch_of(block)

    def _cut(
        self, rng: np.random.Generator, windows: Block, sources: Sequence[StoredSeries], *, plain: bool = False
    ) -> None:
        """Fill windows with values of random series; what lies outside of a series stays NaN."""
        if not len(windows):
            return
        owner = rng.integers(len(sources), size=len(windows))
        for number, source in enumerate(sources):
            rows = np.flatnonzero(owner == number)
            series = source.draw(rng, len(rows))
            cuts = self._cuts(rng, source.lengths[series], plain=plain)
            for row, start, cut in zip(rows, source.starts[series].tolist(), zip(*cuts, strict=True), strict=True):
                length, stride, cutoff, horizon, backward = cut
                values = source.values[start : start + length]
                values = (values[::-1] if backward else values)[::stride]
                first = max(0, cutoff - REACH)
                windows[row, REACH - cutoff + first : REACH + horizon] = values[first : cutoff + horizon]

    def _cuts(self, rng: np.random.Generator, lengths: Integers, *, plain: bool) -> list[list[int]]:
        """Draw where windows are cut: length of the series, stride, cutoff, horizon, and whether time is reversed."""
        count = len(lengths)
        most = np.clip(lengths // MIN_STRIDED, 1, MAX_STRIDE)
        strides = np.where(rng.random(count) < self.options.strided_share, rng.integers(1, most + 1), 1)
        backward = rng.random(count) < self.options.reversed_share
        if plain:
            strides, backward = np.ones_like(strides), np.zeros_like(backward)
        steps = lengths // strides
        horizons = log_uniform(rng, MIN_HORIZON, MAX_HORIZON + 1, count).astype(np.int64)
        horizons = np.minimum(horizons, steps - MIN_CONTEXT)
        last = steps - horizons
        first = np.maximum(np.minimum(last, MIN_CONTEXT), last // 4)
        cutoffs = rng.integers(first, last + 1)
        return [array.tolist() for array in (lengths, strides, cutoffs, horizons, backward)]

    def _hide(self, rng: np.random.Generator, past: Block) -> None:
        """Shorten a share of the contexts, and remove values of another."""
        known = log_uniform(rng, 2 * MIN_CONTEXT, LEVELS[0].cells + 1, len(past)).astype(np.int64)
        for row in np.flatnonzero(rng.random(len(past)) < self.options.short_share):
            past[row, : -known[row]] = np.nan
        rows = np.flatnonzero(rng.random(len(past)) < self.options.missing_share)
        past[rows, -RECENT:] = with_missing(rng, past[rows, -RECENT:])


def batch_of(windows: Block) -> Batch:
    """Split windows into context cells and targets, with a mask of what is known."""
    known = ~np.isnan(windows)
    values = np.where(known, windows, np.float32(0))
    contexts, masks = [], []
    end = REACH
    for level in LEVELS:
        start = end - level.steps * level.cells
        cells = (len(windows), level.cells, level.steps)
        count = known[:, start:end].reshape(cells).sum(axis=2, dtype=np.float32)
        contexts.append(values[:, start:end].reshape(cells).sum(axis=2) / np.maximum(count, 1))
        masks.append(count / level.steps)
        end = start
    return Batch(
        np.concatenate(contexts[::-1], axis=1),
        np.concatenate(masks[::-1], axis=1),
        values[:, REACH:],
        known[:, REACH:].astype(np.float32),
    )
