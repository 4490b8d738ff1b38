import pytest
import torch

from leapts.data.panel import Panel
from leapts.datasets.catalogue import find
from leapts.errors import DataError
from leapts_bench.protocol import cut, folds, prepare
from tests.bench.conftest import ETT_HOURLY


# Published split boundaries: the ends of training, validation and test.
@pytest.mark.parametrize(
    ("name", "borders", "windows"),
    [
        ("ETTh1", (8640, 11520, 14400), 2880),
        ("ETTm1", (34560, 46080, 57600), 11520),
        ("Exchange", (5311, 6071, 7588), 1517),
        ("Weather", (36887, 42157, 52696), 10539),
        ("ILI", (676, 773, 966), 193),
        ("SP500", (5653, 6462, 8077), 1615),
        ("COVID", (234, 268, 335), 67),
        ("Wiki", (511, 584, 730), 146),
    ],
)
def test_splits_equal_the_published_boundaries(name: str, borders: tuple[int, int, int], windows: int) -> None:
    row = find(name)
    assert row.split is not None
    assert row.input_size is not None
    assert (row.split.train.stop, row.split.val.stop, row.split.test.stop) == borders
    panel = Panel.from_matrix(torch.zeros(1, row.length or 0, dtype=torch.float64) + torch.arange(row.length or 0))
    horizon = row.horizons[0]
    test = cut(panel, row.split, input_size=row.input_size, horizon=horizon).test()
    assert len(test) == windows - horizon + 1


def test_targets_lie_in_their_part() -> None:
    steps = Panel.from_matrix(torch.arange(14_400.0, dtype=torch.float64).repeat(2, 1))
    data = cut(steps, ETT_HOURLY, input_size=96, horizon=24)

    def stretch(windows_name: str) -> tuple[int, int]:
        windows = getattr(data, windows_name)()
        first, last = windows.gather(torch.tensor([0, len(windows) - 1])).target
        return tuple(round(float(data.scaler.inverse(x)[0, at])) for x, at in ((first, 0), (last, -1)))  # type: ignore[return-value]

    assert stretch("train") == (96, 8639)
    assert stretch("validation") == (8640, 11519)
    assert stretch("test") == (11520, 14399)


def test_scaling_uses_the_training_part_only(panel: Panel) -> None:
    changed = Panel.from_matrix(torch.cat([panel.matrix()[:, :8640], 9 + panel.matrix()[:, 8640:]], 1))
    one, other = (cut(series, ETT_HOURLY, input_size=96, horizon=24).scaler for series in (panel, changed))
    assert torch.equal(one.mean, other.mean)
    assert torch.equal(one.std, other.std)


def test_a_data_set_with_a_separate_test_file_is_refused() -> None:
    with pytest.raises(DataError, match="M4-Yearly keeps its test part apart"):
        prepare("M4-Yearly", input_size=12, horizon=6)


def test_folds_move_the_validation_part_back_and_exclude_the_test() -> None:
    split = find("ILI").split
    assert split is not None
    first, second, last = folds(split, 3)
    assert last == split
    assert (first.train.stop, first.val, second.val) == (482, (482, 579), (579, 676))
    assert all(fold.val.stop <= split.test.start for fold in (first, second, last))
