"""One file per check: each has a function `check()` that returns a `CheckResult`."""
