import json
from pathlib import Path

import pytest

from leapts.errors import ConfigError
from leapts_bench import results
from leapts_bench.runs import BaselineDesign, LeapTSDesign, Learning, Run, parse_run
from tests.bench.conftest import TINY, tiny_run


def test_the_key_of_a_description_never_changes() -> None:
    """Stored results are found by their keys: another key would repeat the run."""
    assert tiny_run().key == "9f72f9ba3087b775"


def test_every_stored_run_keeps_its_key_under_current_names() -> None:
    """An option that is renamed must not change keys: finished runs would be repeated."""
    stored = [
        line
        for path in sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("*.jsonl"))
        for line in results.read(path)
        if "key" in line and "season" not in line.get("run", {"season": 1})  # an option that was withdrawn
    ]
    renamed = [line for line in stored if "variate_identity" in json.dumps(line["run"])]
    assert len(renamed) > 100
    for line in stored:
        assert parse_run(json.dumps(line["run"])).key == line["key"]


def test_an_option_has_one_name_in_a_run_and_one_in_its_description() -> None:
    run = tiny_run().model_copy(update={"model": LeapTSDesign(options={"variate_identity": True})})
    assert isinstance(run.model, LeapTSDesign)
    assert run.model.options == {"series_embedding": True}
    assert run.description()["model"]["options"] == {"variate_identity": True}
    assert parse_run(json.dumps(run.description())) == run


def test_a_run_can_be_restored_from_json() -> None:
    run = tiny_run()
    again = Run(**json.loads(json.dumps(run.model_dump(mode="json"))))
    assert again == run
    assert again.key == run.key


def test_every_option_changes_the_key() -> None:
    run = tiny_run()
    others = [
        tiny_run(seed=2),
        tiny_run(horizon=18),
        run.model_copy(update={"input_size": 36}),
        run.model_copy(update={"dataset": "Scenario2"}),
        run.model_copy(update={"training": Learning(epochs=1)}),
        run.model_copy(update={"model": BaselineDesign(name="DLinear")}),
        TINY.distilled(4).run("SeattleWeather", input_size=24, horizon=12, seed=1),
        TINY.changed({"hidden_size": 16}).run("SeattleWeather", input_size=24, horizon=12, seed=1),
    ]
    assert len({run.key, *(other.key for other in others)}) == len(others) + 1


def test_one_model_is_its_own_only_member() -> None:
    run = tiny_run(seed=3)
    assert run.members() == [run]
    assert TINY.ensemble(1).run("SeattleWeather", input_size=24, horizon=12, seed=3).key == run.key


def test_no_two_runs_share_a_member() -> None:
    means = [TINY.ensemble(4).run("SeattleWeather", input_size=24, horizon=12, seed=seed) for seed in (1, 2, 3)]
    members = [member for mean in means for member in mean.members()]
    assert members == [tiny_run(seed=seed) for seed in range(1, 13)]


def test_a_run_cannot_be_changed_in_place() -> None:
    with pytest.raises(ValueError, match="frozen"):
        tiny_run().seed = 2


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(ConfigError, match="epoch"):
        Run(**{**tiny_run().model_dump(), "epoch": 3})


@pytest.mark.parametrize(("windows", "steps"), [(1000, 64), (1, 2), (33, 4)])
def test_epochs_are_converted_to_steps(windows: int, steps: int) -> None:
    config = Learning(epochs=2, batch_size=32, looks=4).config(windows, seed=5)
    assert config.max_steps == steps
    assert config.max_steps // config.val_check_steps >= min(4, steps)
    assert config.random_seed == 5
