"""``python -m jupyter_tfguard``: equivalent to ``jupyter tfguard``."""

import sys

from .cli import main

sys.exit(main())
