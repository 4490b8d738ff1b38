"""Clusters of series, against scikit-learn."""

import pytest
import torch
from sklearn.cluster import KMeans

from leapts import model
from leapts.model import cluster_series


def _waves(groups: int, each: int) -> torch.Tensor:
    time = torch.arange(200.0)
    base = torch.stack([torch.sin(time / (3 + 4 * g)) for g in range(groups)])
    noise = torch.randn(groups * each, 200, generator=torch.Generator().manual_seed(0))
    scale = torch.linspace(1, 50, groups * each).unsqueeze(1)
    return scale * (base.repeat(each, 1) + 0.2 * noise) + 10 * scale


def test_clusters_do_not_depend_on_level_and_spread() -> None:
    groups = cluster_series(_waves(3, 6), 3, torch.Generator().manual_seed(0))
    assert groups.tolist() == [0, 1, 2] * 6


@pytest.mark.parametrize("clusters", [1, 2, 4, 7])
def test_clusters_are_as_tight_as_those_of_scikit_learn(clusters: int) -> None:
    series = torch.randn(40, 30, generator=torch.Generator().manual_seed(1)).cumsum(1).double()
    standard = (series - series.mean(1, keepdim=True)) / series.std(1, correction=0, keepdim=True)
    groups = cluster_series(series, clusters, torch.Generator().manual_seed(0))
    ours = sum(
        float((members - members.mean(0)).square().sum())
        for g in range(clusters)
        if len(members := standard[groups == g])
    )
    theirs = KMeans(clusters, n_init=10, random_state=0).fit(standard.numpy()).inertia_
    assert ours <= 1.02 * theirs


def test_the_same_seed_gives_the_same_clusters() -> None:
    series = torch.randn(30, 50, generator=torch.Generator().manual_seed(2))
    first, again = (cluster_series(series, 5, torch.Generator().manual_seed(9)) for _ in range(2))
    assert torch.equal(first, again)


def test_constant_and_repeated_series_still_get_a_cluster() -> None:
    groups = cluster_series(torch.ones(4, 10), 3, torch.Generator().manual_seed(0))
    assert groups.shape == (4,)
    assert set(groups.tolist()) <= {0, 1, 2}


def test_with_as_many_clusters_as_series_each_has_one() -> None:
    groups = cluster_series(_waves(4, 1), 4, torch.Generator().manual_seed(0))
    assert groups.tolist() == [0, 1, 2, 3]


def test_the_old_name_warns_and_finds_the_same_clusters() -> None:
    series = _waves(3, 6)
    with pytest.warns(DeprecationWarning, match="cluster_series"):
        old = model.cluster_variates(series, 3, torch.Generator().manual_seed(0))
    assert torch.equal(old, cluster_series(series, 3, torch.Generator().manual_seed(0)))
