"""Shared by several commands: open the reports, including those of unwatched crashes, and find a report by id."""

from __future__ import annotations

from collections.abc import Iterable

from ..config import load_settings
from ..errors import BundleNotFound, TfGuardError
from ..places import bundles_folder, copies_folder, recordings_folder
from ..postmortem.handle import Postmortem
from ..record.unsaved import BackedStore


def open_store() -> BackedStore:
    """All reports of this user. First creates the missing reports of unwatched crashes.

    Raises:
        SettingsUnreadable: The per-user settings file is damaged.
    """
    store = BackedStore(bundles_folder())
    Postmortem(
        recordings_folder(), store, load_settings(), copies=copies_folder()
    ).handle_unwatched()
    return store


def one_id(ids: Iterable[str], beginning: str) -> str:
    """The only id that starts with `beginning`.

    Raises:
        BundleNotFound: There is none.
        TfGuardError: There are several.
    """
    found = [known for known in ids if known.startswith(beginning)] if beginning else []
    if beginning in found or len(found) == 1:
        return beginning if beginning in found else found[0]
    if not found:
        raise BundleNotFound(beginning)
    raise TfGuardError(
        f"{len(found)} reports have ids that start with {beginning!r}: {', '.join(found[:5])}."
    )
