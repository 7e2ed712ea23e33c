"""One file per check: each has a function `check(machine)` that returns one `CheckResult`, several, or None without a subject."""
