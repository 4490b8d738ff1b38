"""The public interface changes only on purpose: `make public-api` rewrites the stored one."""

import tomllib

import pytest

import public_api

pytest.importorskip("fastapi", reason="the server needs: pip install 'leapts[serve]'")


@pytest.mark.usefixtures("unchecked_shapes")  # an export traces the network
def test_public_interface_is_the_stored_one() -> None:
    stored = tomllib.loads(public_api.TARGET.read_text())
    collected = public_api.collect()
    assert collected.keys() == stored.keys()
    changed = {part: (collected[part], stored[part]) for part in stored if collected[part] != stored[part]}
    assert changed == {}


def test_fields_of_nested_json_are_named_by_their_path() -> None:
    value = {"model": "m", "series": [{"id": 1, "values": {"LeapTS": [1.0]}}]}
    assert public_api.fields(value) == [
        "model", "series", "series[].id", "series[].values", "series[].values.LeapTS"
    ]  # fmt: skip
