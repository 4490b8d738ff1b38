"""A folder of series for training: real ones, and shards of synthetic ones that are replaced as training goes on.

    manifest.json                 options, and what the real series are
    real-train.npy, ...           values of all real series one after the other, float32
    synthetic-SS-GGGGG.npy        shard S in its generation G, float16 as [series, steps]

A shard depends on the seed, its number and its generation alone: a shard that is missing is made again, bit by bit.
"""

import io
import json
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leapts.errors import DataError
from leapts.files import write_file
from leapts_pretrain.corpus import CorpusSet, Series
from leapts_pretrain.generators import generate

Integers = npt.NDArray[np.int64]

BLOCK = 8192  # series that are generated at once
VALIDATION_SHARD = 10_000  # a number that no shard for training has
M4 = "M4 "  # how the names of its sets begin


@dataclass(frozen=True, kw_only=True)
class BankOptions:
    """Size of a bank, and how fast its shards are replaced."""

    shards: int = 16
    series: int = 49_152  # of a shard
    length: int = 2_560  # of a synthetic series
    refresh: int = 2_000  # steps of training from one new shard to the next; 0 for never
    m4_share: float = 0.4  # of the windows from real series, at most
    seed: int = 0


@dataclass(frozen=True, eq=False)
class StoredSeries:
    """Series stored one after the other in a flat array, and how often each is drawn."""

    values: npt.NDArray[np.floating]
    starts: Integers
    lengths: Integers
    cumulative_weights: npt.NDArray[np.float64] | None = None  # all the same without them

    def draw(self, rng: np.random.Generator, count: int) -> Integers:
        """Draw series by their weights."""
        if self.cumulative_weights is None:
            return rng.integers(len(self.starts), size=count)
        return np.searchsorted(self.cumulative_weights, rng.random(count), side="right")


@dataclass(frozen=True)
class Bank:
    """A folder of series for training and validation."""

    folder: Path
    options: BankOptions

    @classmethod
    def open(cls, folder: Path) -> "Bank":
        """Open a bank.

        Raises:
            DataError: When there is none.
        """
        file = folder / "manifest.json"
        if not file.exists():
            raise DataError(f"{folder} has no bank of series; build it by: python -m leapts_pretrain build {folder}")
        return cls(folder, BankOptions(**json.loads(file.read_text())["options"]))

    def generation(self, shard: int, step: int) -> int:
        """Count how often a shard was replaced before a step of training; shards are replaced in turn."""
        refreshes = step // self.options.refresh if self.options.refresh else 0
        return (refreshes + self.options.shards - 1 - shard) // self.options.shards

    def synthetic(self, step: int) -> list[StoredSeries]:
        """Open the shards of a step of training, and make those that are missing; older ones are removed."""
        return [self._shard(shard, self.generation(shard, step)) for shard in range(self.options.shards)]

    @cached_property
    def synthetic_validation(self) -> list[StoredSeries]:
        """Synthetic series of validation, from seeds that training never uses."""
        return [self._shard(VALIDATION_SHARD, 0)]

    @cached_property
    def real_train(self) -> StoredSeries:
        """Real series of training."""
        return self._real("train")

    @cached_property
    def real_validation(self) -> StoredSeries:
        """Real series of validation: sets that training never sees, and some series of M4."""
        return self._real("validation")

    def _real(self, part: str) -> StoredSeries:
        index = np.load(self.folder / f"real-{part}-index.npy")
        weights = np.cumsum(index["weight"])
        values = np.load(self.folder / f"real-{part}.npy", mmap_mode="r").view(np.ndarray)
        return StoredSeries(values, index["start"], index["length"], weights / weights[-1])

    def _shard(self, shard: int, generation: int) -> StoredSeries:
        path = self.folder / f"synthetic-{shard:02d}-{generation:05d}.npy"
        if not path.exists():
            _save(path, self._generated(shard, generation))
            for older in self.folder.glob(f"synthetic-{shard:02d}-*.npy"):
                if older != path:
                    older.unlink()
        return _opened(path)

    def _generated(self, shard: int, generation: int) -> npt.NDArray[np.float16]:
        count = self.options.series if shard != VALIDATION_SHARD else min(self.options.series, BLOCK)
        block = np.empty((count, self.options.length), np.float16)
        for start in range(0, count, BLOCK):
            rng = np.random.default_rng((self.options.seed, shard, generation, start))
            rows = block[start : start + BLOCK]
            rows[:] = generate(rng, *rows.shape).clip(-6e4, 6e4)
        return block


@lru_cache(maxsize=64)
def _opened(path: Path) -> StoredSeries:
    """Open a shard that is complete: files of shards never change."""
    values = np.load(path, mmap_mode="r").view(np.ndarray)  # slices of a plain array are cheaper
    series, length = values.shape
    return StoredSeries(values.reshape(-1), np.arange(series) * length, np.full(series, length))


INDEX = np.dtype([("start", np.int64), ("length", np.int64), ("weight", np.float64), ("set", np.int32)])


def write_real(folder: Path, part: str, sets: list[tuple[CorpusSet, list[Series]]], m4_share: float) -> None:
    """Store the real series of training or validation, each with mean 0 and standard deviation 1.

    A set is drawn in proportion to the square root of its values, M4 in at most its share; a series of a set in
    proportion to the square root of its length.
    """
    series = [one for _, found in sets for one in found]
    lengths = np.array([len(one) for one in series])
    owner = np.repeat(np.arange(len(sets)), [len(found) for _, found in sets])
    set_weight = np.sqrt(np.bincount(owner, weights=lengths, minlength=len(sets)))
    of_m4 = np.array([source.name.startswith(M4) for source, _ in sets])
    m4_weight, other_weight = set_weight[of_m4].sum(), set_weight[~of_m4].sum()
    if other_weight and m4_weight > m4_share * (m4_weight + other_weight):
        set_weight[of_m4] *= m4_share / (1 - m4_share) * other_weight / m4_weight
    weight = np.sqrt(lengths)
    weight *= (set_weight / np.bincount(owner, weights=weight, minlength=len(sets)))[owner]
    index = np.empty(len(series), INDEX)
    index["start"], index["length"] = np.cumsum(lengths) - lengths, lengths
    index["weight"], index["set"] = weight / weight.sum(), owner
    _save(folder / f"real-{part}.npy", np.concatenate([_scaled(one) for one in series]))
    _save(folder / f"real-{part}-index.npy", index)


def _scaled(series: Series) -> Series:
    values = series.astype(np.float64)
    return ((values - np.nanmean(values)) / (np.nanstd(values) or 1)).astype(np.float32)


def write_manifest(folder: Path, options: BankOptions, sets: list[dict[str, Any]]) -> None:
    """Write the options of a bank and what its real series are."""
    write_file(folder / "manifest.json", json.dumps({"options": asdict(options), "sets": sets}, indent=1).encode())


def _save(path: Path, array: npt.NDArray[Any]) -> None:
    content = io.BytesIO()
    np.save(content, array)
    write_file(path, content.getvalue())
