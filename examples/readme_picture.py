"""Draw the README picture: a forecast of Seattle temperatures, with its leaps colored by scale.

python examples/readme_picture.py
"""

from pathlib import Path

from leapts import LeapTS
from leapts.data.frames import panel_frame
from leapts.datasets.loading import load
from leapts.report.plots import write_forecast_plot

TARGET = Path(__file__).parents[1] / "docs" / "images" / "forecast.png"


def main() -> None:
    """Fit the model, forecast, and draw one series."""
    panel = load("SeattleWeather")
    model = LeapTS(h=28, random_seed=1).fit(panel)
    forecast, trace = model.predict(level=[80, 95], return_trace=True)
    write_forecast_plot(panel_frame(panel), forecast, trace, "temp_max", TARGET, shown=84)


if __name__ == "__main__":
    main()
