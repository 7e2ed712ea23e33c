"""What several commands do first: open the reports, after reporting kernels that died while nobody watched."""

from __future__ import annotations

from ..config import load_settings
from ..places import bundles_folder, recordings_folder
from ..record.bundle import BundleStore
from ..report.publish import report_orphans


def open_store() -> BundleStore:
    """All reports of this user, those of unwatched deaths included.

    Raises:
        SettingsUnreadable: The per-user settings file is damaged.
    """
    store = BundleStore(bundles_folder())
    report_orphans(recordings_folder(), store, load_settings())
    return store
