"""Draws the README's picture: a forecast of the paper's second scenario, with its leaps coloured by scale.

python examples/readme_picture.py
"""

from pathlib import Path

from leapts import LeapTS
from leapts.data.frames import panel_frame
from leapts.data.loading import load
from leapts.report import forecast_svg

TARGET = Path(__file__).parents[1] / "docs" / "images" / "forecast.svg"


def main() -> None:
    """Fit, forecast, draw."""
    panel = load("Scenario2").tail(6000)
    model = LeapTS(h=96, input_size=96, max_steps=600, random_seed=3).fit(panel)
    forecast, trace = model.predict(level=[80, 95], return_trace=True)
    TARGET.write_text(forecast_svg(panel_frame(panel), forecast, trace, "X", shown=160))


if __name__ == "__main__":
    main()
