"""``python -m jupyter_tfguard``: the same as ``jupyter tfguard``."""

import sys

from .cli import main

sys.exit(main())
