"""Versions as their makers released them."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version


def released(text: str) -> Version | None:
    """The version; None for a nightly, a candidate, a home-made or patched one, and for text that is no version.

    A table knows releases only: nothing follows from them for what was built from other sources.
    """
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    odd = version.is_prerelease or version.is_postrelease or version.local is not None
    return None if odd else version
