# Installed by jupyter-tfguard as {sys.prefix}/etc/ipython/startup/00-tfguard.py: starts its guard in every Jupyter kernel
# of this environment, and does nothing in a terminal. TFGUARD_DISABLE=1 in the environment switches it off.
# It runs in the user's namespace, so it leaves no name there, not even a docstring; an error here would keep the user's
# own startup files from running, so none gets out.


def _tfguard_autostart() -> None:
    try:
        shell = get_ipython()  # type: ignore[name-defined]  # noqa: F821
        if getattr(shell, "kernel", None) is None:
            return
        try:
            import jupyter_tfguard.shield as shield
        except ImportError:
            return  # uninstalled, and this file was left behind
        with shield.shielded("kernel start"):
            from jupyter_tfguard.kernel.startup import autostart

            autostart(shell)
    except Exception:
        return


try:
    _tfguard_autostart()
finally:
    del _tfguard_autostart
