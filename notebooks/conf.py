"""Sphinx settings of the documentation. To build it: ``python -m sphinx -W -b html notebooks notebooks/_build/html``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from jupyter_tfguard import __version__  # noqa: E402

project = "jupyter-tfguard"
author = "The jupyter-tfguard developers"
copyright = author
version = release = __version__

extensions = ["myst_nb", "extension"]
exclude_patterns = ["_build", "**/*.part.md", "**/.ipynb_checkpoints"]
# The guides have cells in which the kernel dies. run_guides.py runs them and stores their outputs.
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True
linkcheck_ignore = [r"https://schema\.jupyter-tfguard\.org/.*"]  # names of schemas, not addresses

html_theme = "furo"
html_title = "jupyter-tfguard"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
