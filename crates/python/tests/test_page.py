"""The Python code of docs/PYTHON.md should have the documented results."""

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "PYTHON.md"


def blocks():
    """Python code blocks of the page, each with its first line number."""
    text = PAGE.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        yield text.count("\n", 0, found.start(1)), found.group(1)


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    count = 0
    for line, code in blocks():
        # Line numbers of a traceback should be those of the page.
        exec(compile("\n" * line + code, str(PAGE), "exec"), names)
        count += 1
    assert count >= 2


def test_a_block_that_is_wrong_is_found(monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nassert 1 == 2\n```\n", encoding="utf-8")
    monkeypatch.setitem(globals(), "PAGE", page)
    [(line, code)] = blocks()
    assert line == 3
    with pytest.raises(AssertionError):
        exec(code, {})
