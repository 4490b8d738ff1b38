"""Show forecasts and the leaps behind them: an HTML report and figures."""

import io
import warnings
from typing import Any

from leapts.report.collect import ReportContents, collect
from leapts.report.page import report_html, write_report

__all__ = ["ReportContents", "collect", "report_html", "write_report"]


def forecast_svg(history: Any, forecast: Any, trace: Any, series: str | int, *, shown: int | None = None) -> str:
    """Draw a forecast as SVG text; deprecated, use `plots.write_forecast_plot`."""
    from leapts.report.plots import new_figure, plot_forecast

    text = "forecast_svg is now leapts.report.plots.write_forecast_plot; the old name goes with release 0.3"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    figure, file = new_figure(1, width=9.0), io.StringIO()
    plot_forecast(history, forecast, trace, series, shown=shown, ax=figure.axes[0])
    figure.savefig(file, format="svg")
    return file.getvalue()
