"""One file per cause, named as the cause it finds."""
