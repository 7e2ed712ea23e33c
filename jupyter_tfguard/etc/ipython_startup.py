# Installed by jupyter-tfguard as {sys.prefix}/etc/ipython/startup/00-tfguard.py. It starts the guard in every Jupyter
# kernel of this environment and does nothing in a terminal. TFGUARD_DISABLE=1 in the environment switches it off. It
# runs in the user's namespace, so it leaves no name there, not even a docstring. An exception here would prevent the
# user's own startup files from running, so all exceptions are caught.


def _tfguard_autostart() -> None:
    try:
        shell = get_ipython()  # type: ignore[name-defined]  # noqa: F821
        if getattr(shell, "kernel", None) is None:
            return
        try:
            import jupyter_tfguard.shield as shield
        except ImportError:
            return  # tfguard was uninstalled, but this file remains
        with shield.shielded("kernel start"):
            from jupyter_tfguard.kernel.startup import autostart

            autostart(shell)
    except Exception:
        return


try:
    _tfguard_autostart()
finally:
    del _tfguard_autostart
