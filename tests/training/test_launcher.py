"""Processes of one machine connect over loopback; those of several use the default interface."""

import os
import socket

import pytest

from leapts.training.launcher import bind_to_loopback


@pytest.fixture(autouse=True)
def _launched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "")  # restored after the test
    monkeypatch.delenv("GLOO_SOCKET_IFNAME")
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "eth0"), (2, "lo0")])


def test_processes_of_one_machine_connect_over_loopback() -> None:
    bind_to_loopback()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "lo0"


@pytest.mark.parametrize("local", ["1", None])
def test_processes_of_several_machines_use_the_default(monkeypatch: pytest.MonkeyPatch, local: str | None) -> None:
    if local is None:
        monkeypatch.delenv("LOCAL_WORLD_SIZE")
    else:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", local)
    bind_to_loopback()
    assert "GLOO_SOCKET_IFNAME" not in os.environ


def test_an_interface_set_by_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth0")
    bind_to_loopback()
    assert os.environ["GLOO_SOCKET_IFNAME"] == "eth0"


def test_without_a_loopback_interface_none_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "if_nameindex", lambda: [(1, "eth0")])
    bind_to_loopback()
    assert "GLOO_SOCKET_IFNAME" not in os.environ
