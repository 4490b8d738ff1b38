"""Building a network from its options."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from leapts.config import ModelConfig
from leapts.errors import ConfigError
from leapts.model.build import build_model
from leapts.model.encoder import MlpMixer
from leapts.model.network import GatedFusion
from leapts.model.schedulers import FlatScheduler, HierarchicalController, Scheduler
from leapts.parts import MlpMixing
from tests.model.variants import CLUSTERS, make_config


def _scheduler(config: ModelConfig) -> Scheduler:
    fusion = build_model(config, seed=0).fusion
    assert isinstance(fusion, GatedFusion)
    return fusion.rollout.scheduler


def test_a_short_horizon_has_a_single_scale() -> None:
    assert isinstance(_scheduler(ModelConfig(h=25, input_size=96)), FlatScheduler)
    assert isinstance(_scheduler(ModelConfig(h=26, input_size=96)), HierarchicalController)


@pytest.mark.parametrize(("n_series", "rank"), [(5, 5), (64, 64), (900, 64)])
def test_mixing_has_a_low_rank_for_many_series(n_series: int, rank: int) -> None:
    config = ModelConfig(h=2, input_size=4, n_series=n_series, mixing=MlpMixing())
    mixer = build_model(config, seed=0).encoder.mixer
    assert isinstance(mixer, MlpMixer)
    assert mixer.gather.out_features == rank


def test_missing_and_wrong_clusters_are_refused() -> None:
    config = make_config(state="clustered")
    with pytest.raises(ConfigError, match=r"5 series.*cluster_series.*None"):
        build_model(config, seed=0)
    with pytest.raises(ConfigError, match=r"\[0, 1\]"):
        build_model(config, seed=0, clusters=[0, 1])
    with pytest.raises(ConfigError, match=r"from 0 to 2.*\[0, 1, 2, 3, 0\]"):
        build_model(config, seed=0, clusters=[0, 1, 2, 3, 0])
    assert build_model(config, seed=0, clusters=CLUSTERS) is not None


def test_given_clusters_are_ignored_with_one_cluster() -> None:
    assert build_model(make_config(), seed=0, clusters=CLUSTERS) is not None


def test_the_same_seed_gives_the_same_weights_while_other_threads_build() -> None:
    config = ModelConfig(h=6, input_size=12, hidden_size=64)
    expected = build_model(config, seed=1).state_dict()
    with ThreadPoolExecutor(8) as pool:
        built = list(pool.map(lambda _: build_model(config, seed=1).state_dict(), range(64)))
    assert all(torch.equal(one[name], value) for one in built for name, value in expected.items())
