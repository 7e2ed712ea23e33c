"""One file per cause, named as the cause it finds; causes that are only a title and advice are rows of ``table.toml``."""
