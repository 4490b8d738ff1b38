"""Options are validated, suggested by name, and the same from a mapping or a config object."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leapts import ConfigError, LeapTS, NotFittedError
from leapts.config import ModelConfig, TrainingConfig
from leapts.forecasting.params import Params
from leapts.parts import MlpMixing
from tests.forecasting.frames import LOOKBACK, UNIVARIATE, H, make_forecaster, make_frame


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("horizon", "h"),
        ("epochs", "max_steps"),
        ("lookback", "input_size"),
        ("seed", "random_seed"),
        ("inputsize", "input_size"),
    ],
)
def test_names_of_other_libraries_are_answered_with_ours(typed: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=rf"no option '{typed}'; did you mean {meant}\?"):
        LeapTS(6, **{typed: 3})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=f"'{typed}'"):
        LeapTS(6).set_params(**{typed: 3})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda model: model.predict(X=1), ["LeapTS.predict", "'X'", "futr_df"]),
        (lambda model: model.predict(horizon=3), ["'horizon'", "LeapTS(h=...)"]),
        (lambda model: model.predict(levels=[80]), ["did you mean level"]),
        (lambda model: model.fit(1, epochs=3), ["LeapTS.fit", "LeapTS(max_steps=...)"]),
        (lambda model: model.cross_validation(1, folds=3), ["did you mean n_windows"]),
        (lambda model: model.update(1, xyzzy=3), ["'xyzzy'", "df, max_steps, progress"]),
    ],
)
def test_methods_suggest_names_too(call: Any, words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        call(LeapTS(6))
    for word in words:
        assert word in str(error.value)


def test_config_objects_give_the_model_that_mappings_give() -> None:
    frame = make_frame()
    mapped = LeapTS(H, LOOKBACK, model={"hidden_size": 4, "mixing": {"kind": "mlp"}}, training={"max_steps": 3}).fit(
        frame
    )
    config = ModelConfig(h=H, input_size=LOOKBACK, hidden_size=4, mixing=MlpMixing(), n_series=3)
    given = LeapTS(H, model=config, training=TrainingConfig(max_steps=3)).fit(frame)
    pd.testing.assert_frame_equal(mapped.predict(), given.predict())
    assert "hidden_size" not in {one.option for one in given.auto_config_}
    assert "batch_size" in {one.option for one in given.auto_config_}  # not set, so chosen from the data


def test_a_horizon_or_look_back_given_twice_must_agree() -> None:
    with pytest.raises(ConfigError, match="h=6 and h=7"):
        LeapTS(6, model=ModelConfig(h=7, input_size=12)).fit(make_frame())
    with pytest.raises(ConfigError, match="input_size=8 and input_size=12"):
        LeapTS(6, 8, model=ModelConfig(h=6, input_size=12)).fit(make_frame())


def test_numbers_of_any_type_are_saved_as_plain_ones(tmp_path: Path) -> None:
    model = make_forecaster(**UNIVARIATE, max_steps=np.float64(3), val_size=np.int64(12)).fit(make_frame())
    params = model.plain_params()
    assert (type(params["max_steps"]), type(params["val_size"])) == (int, int)
    model.save(tmp_path / "m")
    assert LeapTS.load(tmp_path / "m").plain_params() == params


@pytest.mark.parametrize(("old", "new"), [("fitted_", "predictor_"), ("picked_", "auto_config_")])
def test_old_attributes_warn_and_work(old: str, new: str) -> None:
    model = make_forecaster(**UNIVARIATE, max_steps=2).fit(make_frame())
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert getattr(model, old) is getattr(model, new)
    with pytest.raises(AttributeError, match="'xyzzy'"):
        model.xyzzy  # noqa: B018
    with pytest.raises(NotFittedError):
        LeapTS(6).predictor_  # noqa: B018


@pytest.mark.parametrize(
    ("options", "old", "new"),
    [
        ({"training": {"teachers": 1}}, "teachers", "distill_from"),
        ({"model": {"variate_identity": False}}, "variate_identity", "series_embedding"),
    ],
)
def test_old_options_warn_and_work(options: dict[str, Any], old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        LeapTS(H, LOOKBACK, max_steps=2, **options).fit(make_frame())


def test_every_option_of_the_constructor_is_a_parameter() -> None:
    assert set(LeapTS(6).get_params()) == set(Params.__init__.__wrapped__.__code__.co_varnames) - {"self"}  # type: ignore[attr-defined]
