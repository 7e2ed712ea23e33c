"""Parse versions of official releases."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def released(text: str) -> Version | None:
    """The version; None for a nightly, release candidate, custom or patched build, and for text that is not a version.

    The tables contain only releases, which say nothing about builds from other sources.
    """
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    odd = version.is_prerelease or version.is_postrelease or version.local is not None
    return None if odd else version
