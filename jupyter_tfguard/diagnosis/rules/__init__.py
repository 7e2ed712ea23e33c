"""One file per cause, named after the cause; causes that need only a title and advice are rows of ``table.toml``."""
