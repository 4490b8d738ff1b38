"""Batches are functions of seed and step; windows come from the bank and nowhere else."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from leapts.errors import DataError
from leapts.model.context import view_of
from leapts_pretrain.bank import Bank, BankOptions, Integers, StoredSeries, write_manifest, write_real
from leapts_pretrain.corpus import CorpusSet
from leapts_pretrain.sampler import CELLS, LEVELS, MAX_HORIZON, REACH, Batch, Sampler, SamplerOptions, batch_of

SIZE = BankOptions(shards=3, series=64, length=600, refresh=10, seed=4)
PLAIN = SamplerOptions(batch_size=64, short_share=0, strided_share=0, reversed_share=0, missing_share=0)


def _walks(seed: int, lengths: list[int]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(length).cumsum().astype(np.float32) for length in lengths]


def _bank(folder: Path) -> Bank:
    folder.mkdir(exist_ok=True)
    m4, other = (CorpusSet(name=name, licence="") for name in ("M4 daily", "loads"))
    write_real(folder, "train", [(m4, _walks(1, [15, 900, 2_000])), (other, _walks(2, [4_000, 300]))], SIZE.m4_share)
    write_real(folder, "validation", [(other, _walks(3, [500, 40]))], SIZE.m4_share)
    write_manifest(folder, SIZE, [])
    return Bank.open(folder)


@pytest.fixture(scope="module")
def bank(tmp_path_factory: pytest.TempPathFactory) -> Bank:
    return _bank(tmp_path_factory.mktemp("bank"))


def _counting(calls: dict[int, int]) -> Callable[[StoredSeries, np.random.Generator, int], Integers]:
    draw = StoredSeries.draw

    def counted(source: StoredSeries, rng: np.random.Generator, count: int) -> Integers:
        calls[id(source)] = calls.get(id(source), 0) + count
        return draw(source, rng, count)

    return counted


def _rows(shards: list[StoredSeries]) -> set[bytes]:
    return {row.tobytes() for shard in shards for row in shard.values.reshape(-1, SIZE.length)}


def _assert_equal(first: Batch, second: Batch) -> None:
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_resumed_sampler_gives_the_batches_of_an_uninterrupted_one(tmp_path: Path) -> None:
    options = SamplerOptions(batch_size=32, seed=9)
    uninterrupted = Sampler(_bank(tmp_path / "one"), options)
    batches = [uninterrupted.batch(step) for step in range(45)]  # shards are replaced at 10, 20, 30 and 40
    resumed = Sampler(_bank(tmp_path / "two"), options)  # on another machine: its shards are made again
    for step in (0, 9, 25, 44):
        _assert_equal(resumed.batch(step), batches[step])
    assert not np.array_equal(batches[0].context, batches[1].context)


def test_shards_are_replaced_in_turn_and_old_ones_removed(tmp_path: Path) -> None:
    bank = _bank(tmp_path / "bank")
    steps = range(0, 70, 10)
    generations = [[bank.generation(shard, step) for shard in range(3)] for step in steps]
    assert generations == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [2, 1, 1], [2, 2, 1], [2, 2, 2]]
    first = np.array(bank.synthetic(0)[0].values)
    assert not np.array_equal(first, bank.synthetic(10)[0].values)
    bank.synthetic(60)
    assert len(list(bank.folder.glob("synthetic-*.npy"))) == 3
    np.testing.assert_array_equal(bank.synthetic(0)[0].values, first)


def test_m4_has_at_most_its_share(bank: Bank) -> None:
    drawn = bank.real_train.draw(np.random.default_rng(0), 20_000)
    assert np.mean(drawn < 3) <= 0.42
    assert set(drawn) == {0, 1, 2, 3, 4}


def test_cells_are_means_of_the_values_that_are_known() -> None:
    windows = np.random.default_rng(0).standard_normal((3, REACH + MAX_HORIZON)).astype(np.float32)
    windows[1, : REACH - 700] = np.nan
    batch = batch_of(windows)
    assert batch.context.shape == batch.observed.shape == (3, CELLS)
    np.testing.assert_array_equal(batch.context[:, -512:], windows[:, REACH - 512 : REACH])
    np.testing.assert_allclose(batch.context[0, 0], windows[0, : LEVELS[-1].steps].mean(), atol=1e-6)
    np.testing.assert_allclose(batch.context[0, -513], windows[0, REACH - 516 : REACH - 512].mean(), atol=1e-6)
    steps = np.concatenate([np.full(level.cells, level.steps) for level in LEVELS[::-1]])
    assert (batch.observed[1] * steps).sum() == 700
    assert (batch.context[1][batch.observed[1] == 0] == 0).all()


def test_context_and_target_follow_each_other_in_the_series(bank: Bank) -> None:
    batch = Sampler(bank, PLAIN).validation(real=True, windows=40)
    series = [np.split(bank.real_validation.values, [500])[number] for number in (0, 1)]
    for context, observed, target, known in zip(*batch, strict=True):
        length, horizon = int(observed[-512:].sum()), int(known.sum())
        assert known[:horizon].all()
        window = np.concatenate([context[-length:], target[:horizon]])
        places = [np.flatnonzero(one == window[0]) for one in series]
        one, start = next((one, int(place[0])) for one, place in zip(series, places, strict=True) if len(place))
        np.testing.assert_array_equal(one[start : start + len(window)], window)


def test_horizons_are_log_uniform_and_contexts_long_enough(bank: Bank) -> None:
    batch = Sampler(bank, SamplerOptions(batch_size=2_000, missing_share=0)).batch(3)
    horizons = batch.target_observed.sum(axis=1)
    assert horizons.min() >= 4
    assert horizons.max() <= MAX_HORIZON
    assert 20 < np.median(horizons) < 45  # the middle of 4 and 256 on a logarithmic scale is 32
    assert (batch.observed > 0).sum(axis=1).min() >= 7
    short = (batch.observed > 0).sum(axis=1) < 512
    assert short.mean() > 0.4
    assert np.isfinite(np.concatenate(batch, axis=1)).all()


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_share_of_real_windows_is_kept(share: float, bank: Bank, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: dict[int, int] = {}
    monkeypatch.setattr(StoredSeries, "draw", _counting(calls))
    Sampler(bank, SamplerOptions(batch_size=50, real_share=share)).batch(1)
    assert calls.get(id(bank.real_train), 0) == 50 * share
    assert sum(calls.values()) == 50


def test_validation_is_fixed_and_apart_from_training(bank: Bank) -> None:
    sampler = Sampler(bank, PLAIN)
    for real in (True, False):
        _assert_equal(sampler.validation(real=real, windows=16), sampler.validation(real=real, windows=16))
    held_out = _rows(bank.synthetic_validation)
    assert len(held_out) > 60
    assert not held_out & _rows(bank.synthetic(0))


def test_a_folder_without_a_bank_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leapts_pretrain build"):
        Bank.open(tmp_path)


def test_a_history_has_the_same_view_in_training_and_in_a_forecast() -> None:
    values = np.random.default_rng(0).standard_normal((3, REACH + MAX_HORIZON)).astype(np.float32)
    values[1, 2_000:2_100] = np.nan
    batch, view = batch_of(values), view_of(torch.from_numpy(values[:, :REACH]))
    np.testing.assert_allclose(view.values, batch.context, atol=1e-6)
    np.testing.assert_allclose(view.observed, batch.observed, atol=1e-6)
