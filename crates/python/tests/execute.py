"""Executes a notebook; stops at the first cell that raises."""

import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=1200, startup_timeout=600, kernel_name="python3").execute()
