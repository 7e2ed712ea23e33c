"""All errors that tfguard raises on purpose, with their messages."""

from __future__ import annotations


class TfGuardError(Exception):
    """Base of all errors that tfguard raises on purpose; the text is written for users."""


class SourceUnavailable(TfGuardError):
    """A source cannot be read now; its metrics stay unknown."""


class FolderUnusable(TfGuardError):
    """A folder for records cannot be created, or is not safe to write to."""


# Exceptions raised while reading a saved file with an unexpected structure.
OTHER_SHAPE = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)


class RecordUnreadable(TfGuardError):
    """A recording or a bundle is too damaged to read."""


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
    """A kernel specification cannot be found, read or changed, or its kernel cannot load the guard."""
