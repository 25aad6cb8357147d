"""Selection of a declared module, such as the one of examples/short-queue."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from anabranch import _carrier


def declared(monkeypatch, *modules):
    entries = [EntryPoint(name=it, value=it, group=_carrier.GROUP) for it in modules]
    monkeypatch.setattr(_carrier, "_declared", lambda: entries)


def test_a_module_of_another_version_is_refused(monkeypatch):
    old = types.ModuleType("old_kinds")
    old.__version__ = "0.0.1"
    monkeypatch.setitem(sys.modules, "old_kinds", old)
    declared(monkeypatch, "old_kinds")
    with pytest.raises(ImportError, match="old_kinds carries anabranch 0.0.1.*build it again"):
        _carrier.take()


def test_two_modules_are_refused(monkeypatch):
    declared(monkeypatch, "one", "other")
    with pytest.raises(ImportError, match="one and other"):
        _carrier.take()
