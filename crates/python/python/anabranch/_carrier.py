"""Which module holds what is written in Rust: the package's own, or one that carries kinds of a user's own beside it."""

from __future__ import annotations

import importlib
import sys
from importlib import metadata
from typing import Iterable

#: The group of entry points by which an installed package says that a module of it is to be taken.
GROUP = "anabranch.native"


def _declared() -> Iterable[metadata.EntryPoint]:
    if sys.version_info >= (3, 10):
        return metadata.entry_points(group=GROUP)
    return metadata.entry_points().get(GROUP, ())


def take() -> None:
    """Has ``anabranch._native`` be the module that an installed package declares, if one does."""
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
