"""How NVIDIA's driver gets onto this system or into this container: the command differs from one to the next."""

from __future__ import annotations

from .environment import Environment

# By the ID or ID_LIKE of /etc/os-release. Others need a package source to be added first, which is no one command.
_COMMANDS = {
    "ubuntu": "sudo ubuntu-drivers install && sudo reboot",
    "debian": "sudo apt install nvidia-driver && sudo reboot",
    "fedora": "sudo dnf install akmod-nvidia && sudo reboot",
    "arch": "sudo pacman -S nvidia && sudo reboot",
}


def install_driver(machine: Environment) -> str | None:
    """The command that installs or updates the driver; None where there is no one command for it."""
    if machine.nvidia.is_wsl:
        return None  # it is Windows' driver
    try:
        lines = machine.path("/etc/os-release").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    told = dict(line.split("=", 1) for line in lines if "=" in line)
    names = f"{told.get('ID', '')} {told.get('ID_LIKE', '')}".replace('"', "").split()
    return next((_COMMANDS[name] for name in names if name in _COMMANDS), None)


def hand_gpu_over(machine: Environment) -> str:
    """How a container is started with the GPU and the driver's libraries of its machine."""
    if machine.path("/.singularity.d").exists():
        return "apptainer exec --nv ..."
    if "KUBERNETES_SERVICE_HOST" in machine.environ:
        return "ask for it in the pod's resources.limits: nvidia.com/gpu: 1"
    return "docker run --gpus all ..."
