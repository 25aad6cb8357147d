"""Report of results as a page."""

from __future__ import annotations

import html
import os
import shutil
from pathlib import Path
from typing import Union

from ._native import Results


class Report:
    """Report of a run. A notebook (Jupyter, marimo) shows it in a frame; ``html`` is its source."""

    def __init__(self, text: str, height: int = 720) -> None:
        self.html = text
        self.height = height

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the page to a file."""
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
    """Report of results: tables, figures and verdicts on one page. If ``directory`` is set, all files are written to it, with the
    measures, samples and figures, like a run of the command. ``height`` is the height of the frame in a notebook, in pixels.
    """
    if directory is not None:
        results.write()
        if Path(directory).resolve() != Path(results.directory).resolve():
            shutil.copytree(results.directory, directory, dirs_exist_ok=True)
    return Report(results.html(), height)
