"""Cut batches of training windows from a bank: context at several resolutions, and targets.

The batch of a step depends on the seed, the step and the bank alone: training that resumes at a step sees the batches
that it would have seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leapts.model import context
from leapts_pretrain.augmentations import augmented, with_missing
from leapts_pretrain.bank import Bank, Integers, StoredSeries
from leapts_pretrain.blocks import Block, groups, log_uniform

MIN_CONTEXT, MIN_HORIZON, MAX_HORIZON = 8, 4, 256
MAX_STRIDE = 4
BLOCK = 256  # windows that are made at once: as many as the cache of a core holds
MIN_STRIDED = 128  # values that a series with a stride has left


class Level(NamedTuple):
    """A resolution of the context: the steps in a cell, and the number of cells."""

    steps: int
    cells: int


# From the most recent values to the oldest; each level goes on where the finer one ends.
LEVELS = tuple(Level(*level) for level in context.LEVELS)
REACH, CELLS = context.REACH, context.CELLS
VALIDATION_STEP = 2**32 - 1  # which training never reaches: its random numbers are others
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
        synthetic = self.bank.synthetic(step)
        parts = []
        for rows in groups(self.options.batch_size, BLOCK):
            is_short = rows.start < self.options.short_share * self.options.batch_size
            reach = LEVELS[0].cells if is_short else REACH
            windows = _empty(rows.stop - rows.start, reach)
            real = rng.binomial(len(windows), self.options.real_share)
            self._cut(rng, windows[:real], [self.bank.real_train])
            self._cut(rng, windows[real:], synthetic)
            augmented(rng, windows)
            if is_short:
                _shorten(rng, windows[:, :reach])
            missing = np.flatnonzero(rng.random(len(windows)) < self.options.missing_share)
            recent = slice(max(reach - RECENT, 0), reach)
            windows[missing, recent] = with_missing(rng, windows[missing, recent])
            parts.append(batch_of(windows))
        return Batch(*map(np.concatenate, zip(*parts, strict=True)))

    def validation(self, *, real: bool, windows: int) -> Batch:
        """Cut fixed windows of validation, without augmentations."""
        rng = np.random.default_rng((self.options.seed, VALIDATION_STEP, int(real)))
        block = _empty(windows, REACH)
        self._cut(rng, block, [self.bank.real_validation] if real else self.bank.synthetic_validation, plain=True)
        return batch_of(block)

    def _cut(
        self, rng: np.random.Generator, windows: Block, sources: Sequence[StoredSeries], *, plain: bool = False
    ) -> None:
        """Fill windows with values of random series; what lies outside of a series stays NaN."""
        if not len(windows):
            return
        owner = rng.integers(len(sources), size=len(windows))
        reach = windows.shape[1] - MAX_HORIZON
        for number, source in enumerate(sources):
            rows = np.flatnonzero(owner == number)
            series = source.draw(rng, len(rows))
            cuts = self._cuts(rng, source.lengths[series], plain=plain)
            for row, start, cut in zip(rows, source.starts[series].tolist(), zip(*cuts, strict=True), strict=True):
                length, stride, cutoff, horizon, backward = cut
                values = source.values[start : start + length]
                values = (values[::-1] if backward else values)[::stride]
                first = max(0, cutoff - reach)
                windows[row, reach - cutoff + first : reach + horizon] = values[first : cutoff + horizon]

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


def _empty(windows: int, reach: int) -> Block:
    return np.full((windows, reach + MAX_HORIZON), np.nan, np.float32)


def _shorten(rng: np.random.Generator, past: Block) -> None:
    """Leave the last 16 to 512 values of every context."""
    known = log_uniform(rng, 2 * MIN_CONTEXT, past.shape[1] + 1, len(past), 1).astype(np.int64)
    past[np.arange(past.shape[1], 0, -1) > known] = np.nan


def batch_of(windows: Block) -> Batch:
    """Split windows into context cells and targets, with a mask of what is known.

    The windows may reach back as far as the first level only; the cells of the others are unknown then.
    """
    reach = windows.shape[1] - MAX_HORIZON
    is_known = ~np.isnan(windows)
    known = is_known.astype(np.float32)
    values = np.where(is_known, windows, np.float32(0))
    context, observed = np.zeros((2, len(windows), CELLS), np.float32)
    end, last = reach, CELLS
    for level in LEVELS:
        start, first = end - level.steps * level.cells, last - level.cells
        if start < 0:  # windows without a longer past
            break
        shape = (len(windows), level.cells, level.steps)
        sums, counts = (_sums(array[:, start:end].reshape(shape)) for array in (values, known))
        context[:, first:last] = sums / np.maximum(counts, 1)
        observed[:, first:last] = counts / level.steps
        end, last = start, first
    return Batch(context, observed, values[:, reach:], known[:, reach:])


def _sums(cells: Block) -> Block:
    """Sum over the last axis, which is too short for numpy to be fast: halves are added."""
    while cells.shape[2] > 1:
        cells = cells[:, :, ::2] + cells[:, :, 1::2]
    return cells[:, :, 0]
