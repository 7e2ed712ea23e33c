"""One file per check: `check(machine)` returns one `CheckResult`, a list of them, or None if it does not apply."""
