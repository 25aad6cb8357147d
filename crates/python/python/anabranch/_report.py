"""The report of results, as a page."""

from __future__ import annotations

import html
import os
import shutil
from pathlib import Path
from typing import Union

from ._native import Results


class Report:
    """The report of a run. A notebook (Jupyter, marimo) shows it in a frame; ``html`` is its text."""

    def __init__(self, text: str, height: int = 720) -> None:
        self.html = text
        self.height = height

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page into a file, which opens from disk."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe title="report" style="{style}" sandbox="allow-popups" srcdoc="{page}"></iframe>'

    def __repr__(self) -> str:
        return f"Report({len(self.html)} characters)"


def report(
    results: Results, directory: Union[None, str, "os.PathLike[str]"] = None, height: int = 720
) -> Report:
    """The report of results: tables, figures and verdicts on one page. ``directory`` gets all of it as files, with the measures,
    samples and figures, as a run of the command leaves it. ``height`` is that of the frame in a notebook, in pixels.
    """
    if directory is not None:
        results.write()
        if Path(directory).resolve() != Path(results.directory).resolve():
            shutil.copytree(results.directory, directory, dirs_exist_ok=True)
    return Report(results.html(), height)
