"""A run of pretraining that was interrupted equals one that was not, bit by bit."""

from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from leapts.errors import DataError
from leapts_pretrain.bank import Bank
from leapts_pretrain.sampler import Sampler, SamplerOptions
from leapts_pretrain.training import PretrainOptions, pretrain
from tests.pretrain.test_sampler import _bank

OPTIONS = PretrainOptions(warmup=2, validation_windows=8)


@pytest.fixture(scope="module")
def sampler(tmp_path_factory: pytest.TempPathFactory) -> Sampler:
    bank: Bank = _bank(tmp_path_factory.mktemp("bank"))
    return Sampler(bank, SamplerOptions(batch_size=16))


def test_a_resumed_run_has_the_same_bits(sampler: Sampler, tmp_path: Path) -> None:
    whole = pretrain(tmp_path / "whole", sampler, OPTIONS, steps=4, check_every=2)
    pretrain(tmp_path / "parts", sampler, OPTIONS, steps=2)
    parts = pretrain(tmp_path / "parts", sampler, OPTIONS, steps=4)
    for one, other in ((whole.model, parts.model), (whole.mean, parts.mean)):
        for name, value in one.state_dict().items():
            assert torch.equal(value, other.state_dict()[name]), name
    assert len((tmp_path / "whole" / "log.jsonl").read_text().splitlines()) == 2


def test_a_run_with_other_options_is_refused(sampler: Sampler, tmp_path: Path) -> None:
    pretrain(tmp_path, sampler, OPTIONS, steps=1)
    other = PretrainOptions(**{**asdict(OPTIONS), "learning_rate": 1.0})
    with pytest.raises(DataError, match="learning_rate"):
        pretrain(tmp_path, sampler, other, steps=2)


def test_the_learning_rate_falls_over_the_last_steps(sampler: Sampler, tmp_path: Path) -> None:
    run = pretrain(tmp_path, sampler, OPTIONS, steps=4, decay=2)
    assert [group["lr"] for group in run.optimizer.param_groups] == [OPTIONS.learning_rate / 2]
