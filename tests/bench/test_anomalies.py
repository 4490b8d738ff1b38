"""NAB: the score by a plain reading of its definition, its limits, and what detectors may see. Figures are invented."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leapts_bench.anomalies.__main__ import area_under_roc, score
from leapts_bench.anomalies.detectors import COLUMNS, available, leapts, rolling_z_score
from leapts_bench.anomalies.nab import PROFILES, Labelled, Profile, at_threshold, best, plain_figures, weights
from leapts_bench.anomalies.page import anomalies_page


def labelled(length: int, *windows: tuple[int, int], name: str = "s", seed: int = 0) -> Labelled:
    return Labelled(name, np.random.default_rng(seed).normal(size=length), windows)


def plain_score(series: Labelled, marked: np.ndarray, profile: Profile) -> float:
    """NAB's sweeper, row by row, for one threshold."""

    def sigmoid(x: float) -> float:
        return -1.0 if x > 3 else 2 / (1 + math.exp(5 * x)) - 1

    false, parts = 0.0, dict.fromkeys(series.windows, -profile.missed)
    for row in range(min(math.floor(0.15 * len(marked)), 750), len(marked)):
        if not marked[row]:
            continue
        around = [window for window in series.windows if window[0] <= row <= window[1]]
        before = [window for window in series.windows if window[1] < row]
        if around:
            first, last = around[0]
            reward = sigmoid(-(last - row + 1) / (last - first + 1)) / sigmoid(-1.0)
            parts[around[0]] = max(parts[around[0]], reward)
        elif before:
            first, last = before[-1]
            false += profile.false * sigmoid((row - last) / (last - first))
        else:
            false -= profile.false
    return false + sum(parts.values())


@given(st.integers(0, 10_000), st.sampled_from(list(PROFILES.values())), st.integers(2, 12))
def test_scores_are_those_of_the_definition(seed: int, profile: Profile, levels: int) -> None:
    random = np.random.default_rng(seed)
    all_series = [labelled(120, (30, 45), (70, 80), name="a"), labelled(90, (20, 33), name="b"), labelled(60, name="c")]
    scores = {one.name: random.integers(0, levels, len(one.values)).astype(float) for one in all_series}
    totals = {}
    for limit in [*range(levels), math.inf]:
        total = sum(plain_score(one, scores[one.name] >= limit, profile) for one in all_series)
        totals[limit] = 100 * (total + 3 * profile.missed) / (3 * (1 + profile.missed))
        assert at_threshold(all_series, scores, profile, limit) == pytest.approx(totals[limit])
    found = best(all_series, scores, profile)
    assert found.score == pytest.approx(max(totals.values()))
    assert totals[found.threshold] == pytest.approx(found.score)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
def test_limits_of_the_score(profile: Profile) -> None:
    series = labelled(200, (60, 80), (120, 150))
    perfect = np.zeros(200)
    perfect[[60, 120]] = 1
    assert best([series], {"s": perfect}, profile).score == pytest.approx(100)
    assert best([series], {"s": np.zeros(200)}, profile).score == 0
    assert weights(series, profile)[60] == pytest.approx(1)
    assert weights(series, profile)[:60] == pytest.approx(-profile.false)


def test_an_earlier_detection_counts_more_and_a_far_false_one_costs_more() -> None:
    reward = weights(labelled(400, (100, 120)), PROFILES["standard"])
    assert (np.diff(reward[100:121]) < 0).all()
    assert (np.diff(reward[121:170]) < 0).all()
    assert reward[-1] == pytest.approx(-0.11)


@pytest.mark.parametrize("name", available())
def test_a_score_depends_on_earlier_values_only(name: str) -> None:
    series = labelled(300, (150, 160))
    changed = series.values.copy()
    changed[200:] += 50
    detector = available()[name]
    before, after = detector(series), detector(Labelled("s", changed, series.windows))
    for variant, scores in before.items():
        # Windows count back from the end, so that of a change is known too where it starts.
        kept = 200 - (24 if variant in COLUMNS else 0)
        np.testing.assert_allclose(scores[:kept], after[variant][:kept], atol=1e-9)
        assert len(scores) == 300


def test_detectors_find_a_spike() -> None:
    values = np.random.default_rng(1).normal(size=400)
    values[300] += 30
    for detector in (leapts, rolling_z_score):
        for variant, scores in detector(Labelled("s", values, ())).items():
            near = scores[300:324] if variant.endswith("leaps") else scores[300:301]
            assert near.max() >= np.quantile(scores, 0.98), variant


def test_area_under_roc_is_a_probability_of_pairs() -> None:
    scores, inside = np.array([1.0, 2, 2, 3]), np.array([False, True, False, True])
    assert area_under_roc(scores, inside) == pytest.approx((1 + 0.5 + 1 + 1) / 4)


def test_page_has_every_detector_in_the_order_of_its_score() -> None:
    all_series = [labelled(120, (50, 60), name="a"), labelled(90, name="b")]
    lines = []
    for number, name in enumerate(("first", "second")):
        scores = {one.name: np.random.default_rng(number).random(len(one.values)) for one in all_series}
        lines.append({"detector": name, **score(all_series, scores), "cpu_seconds": 1.0})
        figures = plain_figures(all_series, scores, 0.5)
        lines[-1]["at_alert_rate"] = {"alert_rate": 0.01, "nab": lines[-1]["nab"], **figures}
    page = anomalies_page(lines)
    assert page.count("| **first** |") == page.count("| **second** |") == 1
    assert page.index("ARTime") < page.index("**first**")
    assert "alert_rate=0.01" in page
    assert anomalies_page([]).startswith("# Anomalies")
