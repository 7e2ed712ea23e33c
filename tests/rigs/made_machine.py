"""Machines and Python environments made of files in a folder, for the doctor to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jupyter_tfguard.doctor.environment import Environment

from .made_wheels import FILES, RELEASES, cudnn_files
from .nvml.library import SCENARIO, environ
from .nvml.scenario import Card, Scenario

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
PCI = "/sys/bus/pci/devices"


class MadeMachine:
    """A machine in a folder: nothing is on it until it is put there.

    Attributes:
        root: Where its ``/`` is.
        site: The folder of its Python packages.
        environ: Its environment variables.
        nvml: What its driver answers when it is asked.
    """

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        self.prefix = folder / "venv"
        self.environ: dict[str, str] = {"PATH": "/usr/bin:/bin"}
        self.nvml = Scenario(driver=None)
        self.python_version = "3.12.4"
        self.site = self.prefix / "lib" / "site-packages"
        self.import_folders = [self.site]
        self.site.mkdir(parents=True)
        self.package("pip", "25.3")
        self.processor("fpu sse4_1 sse4_2 avx f16c fma avx2 hypervisor")

    def environment(self, **more: Any) -> Environment:
        """What the doctor is given; `more` replaces parts of it."""
        if SCENARIO in self.environ:
            self.nvml.save(Path(self.environ[SCENARIO]))
        made = Environment(
            root=self.root,
            environ=self.environ,
            import_folders=tuple(self.import_folders),
            python="python",
            python_version=self.python_version,
            prefix=self.prefix,
            system="linux",
            processor="x86_64",
        )
        return replace(made, **more)

    def path(self, absolute: str) -> Path:
        """A file of this machine."""
        return self.root / absolute.lstrip("/")

    def write(self, absolute: str, text: str = "") -> Path:
        """Put a file there."""
        path = self.path(absolute)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def processor(self, flags: str) -> None:
        """The processor's instructions."""
        lines = f"processor\t: 0\nmodel name\t: Made Processor 9000\nflags\t\t: {flags}\n\n"
        self.write("/proc/cpuinfo", lines + lines.replace("processor\t: 0", "processor\t: 1"))

    # Packages

    def package(
        self,
        name: str,
        version: str,
        *,
        requires: Sequence[str] = (),
        headers: Sequence[str] = (),
        files: Sequence[str] = (),
        tag: str = "py3-none-any",
        folder: Path | None = None,
        installer: str = "pip",
    ) -> None:
        """Install a package: its metadata, and its files, empty."""
        site = folder or self.site
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        lines = [f"Name: {name}", f"Version: {version}", *headers]
        lines += [f"Requires-Dist: {line}" for line in requires]
        (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "\n".join(lines) + "\n\nText\n")
        (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nTag: {tag}\n")
        (info / "INSTALLER").write_text(f"{installer}\n")
        (info / "RECORD").write_text("".join(f"{file},sha256=x,1\n" for file in files))
        for file in files:
            path = site / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    def remove(self, name: str) -> None:
        """Take a package's metadata away."""
        for info in self.site.glob(f"{name.replace('-', '_')}-*.dist-info"):
            for file in info.iterdir():
                file.unlink()
            info.rmdir()

    def tensorflow(
        self,
        release: str,
        *,
        name: str = "tensorflow",
        version: str | None = None,
        cuda: bool = True,
        fitting: bool = True,
        folder: Path | None = None,
        installer: str = "pip",
        **build: Any,
    ) -> None:
        """Install TensorFlow as a release's wheel does, and the other packages that fit it."""
        known = RELEASES[release]
        between = "==" if known.exact_pins else ">="
        pins = [
            f'nvidia-{n}-cu12{between}{v}; extra == "and-cuda"' for n, v in known.nvidia.items()
        ]
        python = self.python_version.split(".")
        tag = f"cp{python[0]}{python[1]}"
        extra = ("Provides-Extra: and-cuda",) if cuda else ()
        self.package(
            name,
            version or known.version,
            requires=(*known.needs, *(pins if cuda else ())),
            headers=(f"Requires-Python: {known.requires_python}", *extra),
            files=("tensorflow/__init__.py",),
            tag=build.pop("tag", f"{tag}-{tag}-manylinux_2_17_x86_64"),
            folder=folder,
            installer=installer,
        )
        info: dict[str, Any] = {"is_cuda_build": cuda}
        if cuda:
            info |= {
                "cuda_version": known.cuda,
                "cudnn_version": known.cudnn,
                "cuda_compute_capabilities": list(known.code),
            }
        target = (folder or self.site) / "tensorflow"
        text = f"import collections\nbuild_info = collections.OrderedDict({list((info | build).items())})\n"
        (target / "python" / "platform").mkdir(parents=True, exist_ok=True)
        (target / "python" / "platform" / "build_info.py").write_text(text)
        if fitting:
            for other, its_version in known.fitting.items():
                self.package(other, its_version)

    def nvidia_packages(self, release: str, *, without: Sequence[str] = (), **other: str) -> None:
        """Install NVIDIA's packages as ``tensorflow[and-cuda]`` does; `other` are other versions of them."""
        for name, version in RELEASES[release].nvidia.items():
            if name in without:
                continue
            its_version = other.get(name.replace("-", "_"), version)
            folder = f"nvidia/{name.replace('-', '_')}/lib"
            files = FILES.get(name) or cudnn_files(its_version)
            self.package(
                f"nvidia-{name}-cu12", its_version, files=[f"{folder}/{file}" for file in files]
            )

    # Libraries of the system

    def library(self, folder: str, soname: str, version: str | None = None) -> Path:
        """Put a library there, the soname a link to the real file as packages of the system have it."""
        link = self.path(f"{folder}/{soname}")
        if version is None:
            self.write(f"{folder}/{soname}")
        else:
            real = self.write(f"{folder}/{soname.split('.so')[0]}.so.{version}")
            link.symlink_to(real.name)
        return link

    def cudnn(self, folder: str, version: str) -> Path:
        """All files of a cuDNN in one folder, which comes back."""
        for file in cudnn_files(version):
            self.library(folder, file, version)
        return self.path(folder)

    def toolkit(self, folder: str, versions: dict[str, str]) -> Path:
        """CUDA libraries in one folder by soname, which comes back."""
        for soname, version in versions.items():
            self.library(folder, soname, version)
        return self.path(folder)

    # GPU and driver

    def gpu(self, driver: str | None = "nvidia", address: str = "0000:01:00.0") -> None:
        """A card on the PCI bus, with its sound part, driven by a module or by none."""
        for part, kind in ((address, "0x030000"), (address[:-1] + "1", "0x040300")):
            self.write(f"{PCI}/{part}/vendor", "0x10de\n")
            self.write(f"{PCI}/{part}/class", f"{kind}\n")
        if driver is not None:
            module = self.path(f"/sys/bus/pci/drivers/{driver}")
            module.mkdir(parents=True, exist_ok=True)
            self.path(f"{PCI}/{address}/driver").symlink_to(module)

    def driver(self, version: str, *, library: str | None = None, files: bool = True) -> None:
        """NVIDIA's module in the OS kernel, its device files and its library."""
        self.write(
            "/proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Mar  5 22:23:56 UTC 2024\n"
            "GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)\n",
        )
        if files:
            self.write("/dev/nvidia0")
            self.write("/dev/nvidiactl")
        self.library(LIBRARIES, "libcuda.so.1", library or version)
        self.nvml.driver = self.nvml.driver or version

    def standin(
        self, folder: Path, fault: str | None = None, cards: Sequence[str] = ("8.0",)
    ) -> None:
        """The stand-in for the driver's library that answers when it is asked.

        Args:
            fault: What goes wrong in which call, as :class:`~.nvml.scenario.Scenario` has it.
            cards: Compute capability of each card; one that is no number is not told.
        """
        self.environ |= environ(folder, self.prefix / "nvml.txt")
        self.nvml.calls = [fault] if fault else []
        self.set_cards(cards)

    def set_cards(self, capabilities: Sequence[str]) -> None:
        """The driver lists these cards."""
        self.nvml.cards = [
            Card(
                name=f"Stand-in {letter}",
                capability=int(told.replace(".", "")) if "." in told else None,
            )
            for letter, told in zip("ABCDEFGH", capabilities, strict=False)
        ]

    def before_libraries(self, folder: Path) -> None:
        """Put a folder first in ``LD_LIBRARY_PATH``."""
        rest = self.environ.get("LD_LIBRARY_PATH", "")
        self.environ["LD_LIBRARY_PATH"] = f"{folder}:{rest}"
