"""Every error tfguard raises on purpose, each with the sentence it prints."""

from __future__ import annotations


class TfGuardError(Exception):
    """Base of all errors that tfguard raises on purpose; its text is meant for people."""


class SourceUnavailable(TfGuardError):
    """A source of facts cannot be read here and now; the metrics it feeds stay unknown."""


class FolderUnusable(TfGuardError):
    """A folder for records cannot be made, or is not safe to write to."""


# What reading a kept file raises that has another shape than it should.
OTHER_SHAPE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


class RecordUnreadable(TfGuardError):
    """A recording or a bundle is damaged beyond reading."""


class RecordTooNew(RecordUnreadable):
    """A record was written by a newer major version of tfguard."""

    def __init__(self, what: str, found: int, known: int) -> None:
        super().__init__(
            f"{what} has format {found}, but this version of tfguard reads formats up to {known}: "
            "upgrade jupyter-tfguard to read it."
        )


class BundleNotFound(TfGuardError):
    """There is no report with this id."""

    def __init__(self, bundle_id: str) -> None:
        super().__init__(
            f"No report has the id {bundle_id!r}. `jupyter tfguard list` lists the reports."
        )


class SettingsUnreadable(TfGuardError):
    """The per-user settings file cannot be used."""


class KernelSpecUnusable(TfGuardError):
    """A kernel specification cannot be found, read or changed, or its kernel cannot have the guard."""
