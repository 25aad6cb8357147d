"""Selection of the Rust module: the package's own, or one that also contains kinds of a user."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from typing import Iterable

#: Group of entry points with which an installed package declares its module.
GROUP = "anabranch.native"


def _declared() -> Iterable[metadata.EntryPoint]:
    if sys.version_info >= (3, 10):
        return metadata.entry_points(group=GROUP)
    return metadata.entry_points().get(GROUP, ())


def take() -> None:
    """Replaces ``anabranch._native`` by the module that an installed package declares, if there is one."""
    modules = sorted({entry.value for entry in _declared()})
    if not modules:
        return
    if len(modules) > 1:
        raise ImportError(
            f"{' and '.join(modules)} carry kinds for anabranch, and it can take one module only; put the kinds into one"
        )
    module = importlib.import_module(modules[0])
    carried, own = getattr(module, "__version__", None), metadata.version("anabranch")
    if carried != own:
        raise ImportError(
            f"{modules[0]} carries anabranch {carried}, and {own} is installed; build it again with the sources of {own}"
        )
    sys.modules["anabranch._native"] = module
