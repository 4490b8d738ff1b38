"""One small fitted model for all tests of reports, and frames to report on."""

import pandas as pd
import pytest

from leapts import LeapTS
from tests.forecasting.frames import UNIVARIATE, make_forecaster, make_frame

HOSTILE = ("<script>alert(1)</script>", "</script><b>bold", '"onmouseover=alert(1) x="', "line\u2028break & <!--")


@pytest.fixture(scope="session")
def data() -> pd.DataFrame:
    return make_frame(dict.fromkeys(("apples", "pears", "plums", *HOSTILE), 200))


@pytest.fixture(scope="session")
def model(data: pd.DataFrame) -> LeapTS:
    """Fitted on all but the last 24 days, so that some windows are new to it."""
    known = data.groupby("unique_id", sort=False).head(176)
    return make_forecaster(**UNIVARIATE, val_size=20).fit(known)
