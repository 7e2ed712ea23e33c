"""The cap of GPU memory: what TensorFlow would start with, when it is not set, and what the user may still do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_tfguard.config import TfGuard, load_settings
from jupyter_tfguard.errors import SettingsUnreadable
from jupyter_tfguard.training import growth as growth_module
from jupyter_tfguard.training.growth import GrowthSetting
from tests.kernel.rig import GuardedKernel, guarded_kernel
from tests.training.pretended_gpus import PretendedGpus

VARIABLE = "TF_FORCE_GPU_ALLOW_GROWTH"
CAP = "guard = begin(limit=8192)\nguard.cap(tf)\n"
TEXT = "GPU memory limited to 8.00 GiB per card by TfGuard.gpu_memory_limit_mib"


@pytest.fixture(scope="module")
def tensorflow() -> Iterator[PretendedGpus]:
    child = PretendedGpus()
    yield child
    child.close()


class TestInForce:
    def test_each_gpu_gets_one_logical_device_of_that_size(self, tensorflow: PretendedGpus) -> None:
        would, told = tensorflow.ask(CAP + "out = [options(), told(guard)]")
        assert would == {"growth": False, "limits": [[8192], [8192]], "visible": "0,1"}
        # The variable makes it grow up to there; without it TensorFlow would take it all at once.
        assert told == ["capped", f"{TEXT}, allocated as needed"]

    def test_without_growth_it_is_taken_at_once(self, tensorflow: PretendedGpus) -> None:
        told = tensorflow.ask(
            "guard = begin(limit=8192, wanted=False)\nguard.cap(tf)\nout = told(guard)"
        )
        assert told == ["capped", f"{TEXT}, all allocated at once"]

    def test_tensorflow_starts_with_it(self, tensorflow: PretendedGpus) -> None:
        code = (
            CAP + "start()\nout = [told(guard)[0], contexts._context._context_handle is not None]"
        )
        assert tensorflow.ask(code) == ["capped", True]

    def test_a_second_import_changes_nothing(self, tensorflow: PretendedGpus) -> None:
        code = (
            CAP
            + "before = list(CALLS)\nguard.cap(tf)\nout = [before == CALLS, options()['limits']]"
        )
        assert tensorflow.ask(code) == [True, [[8192], [8192]]]


class TestTheUsersOwn:
    def test_what_they_configured_before_counts(self, tensorflow: PretendedGpus) -> None:
        code = "guard = begin(limit=8192)\nsplit(gpus()[0], 1024, 1024)\nguard.cap(tf)\n"
        would, told = tensorflow.ask(code + "out = [options(), told(guard)]")
        assert would["limits"] == [[1024, 1024], [8192]]
        assert told[0] == "capped"
        assert "(GPU:0 to 2.00 GiB, GPU:1 to 8.00 GiB)" in told[1]

    def test_what_they_configure_later_counts(self, tensorflow: PretendedGpus) -> None:
        would, told = tensorflow.ask(
            CAP + "for gpu in gpus(): split(gpu, 2048)\nout = [options(), told(guard)]"
        )
        assert would["limits"] == [[2048], [2048]]
        assert "by your logical devices (GPU:0 to 2.00 GiB" in told[1]

    def test_a_notebook_that_calls_set_memory_growth_runs_on(
        self, tensorflow: PretendedGpus
    ) -> None:
        # Logical devices make this call raise, and the lines of TensorFlow's guide do not catch that.
        code = CAP + "for gpu in gpus(): grow(gpu, True)\n"
        read = "[tf.config.experimental.get_memory_growth(gpu) for gpu in gpus()]"
        read_back, would = tensorflow.ask(code + f"out = [{read}, options()]")
        assert read_back == [True, True]
        assert would["limits"] == [[8192], [8192]]
        with pytest.raises(RuntimeError, match="Cannot set memory growth on device when virtual"):
            tensorflow.ask("begin()\nsplit(gpus()[0], 8192)\ngrow(gpus()[0], True)")

    def test_their_own_logical_devices_still_refuse_it(self, tensorflow: PretendedGpus) -> None:
        with pytest.raises(RuntimeError, match="Cannot set memory growth on device when virtual"):
            tensorflow.ask(CAP + "split(gpus()[0], 1024)\ngrow(gpus()[0], True)")

    def test_a_gpu_that_they_hide_stays_hidden(self, tensorflow: PretendedGpus) -> None:
        code = (
            CAP + "tf.config.set_visible_devices(gpus()[1:], 'GPU')\nout = [options(), told(guard)]"
        )
        would, told = tensorflow.ask(code)
        assert (would["limits"], would["visible"]) == ([[8192]], "1")
        assert told == ["capped", f"{TEXT}, allocated as needed"]


class TestNotSet:
    def test_without_the_option_nothing_is_called(self, tensorflow: PretendedGpus) -> None:
        found = tensorflow.ask(
            "guard = begin()\nguard.cap(tf)\nout = [list(CALLS), options()['limits']]"
        )
        assert found == [[], []]

    @pytest.mark.parametrize("hidden", ["", "-1"])
    def test_where_gpus_are_hidden_nothing_is_called(
        self, tensorflow: PretendedGpus, hidden: str
    ) -> None:
        code = f"guard = begin(limit=8192, CUDA_VISIBLE_DEVICES={hidden!r})\nguard.cap(tf)\nout = CALLS"
        assert tensorflow.ask(code) == []

    def test_too_late_is_said_and_nothing_tried(self, tensorflow: PretendedGpus) -> None:
        code = "guard = begin(limit=8192)\ngpus(); start()\nguard.cap(tf)\nout = told(guard)"
        found, text = tensorflow.ask(code)
        assert found == "on"
        assert "too late for TfGuard.gpu_memory_limit_mib" in text
        assert "restart the kernel" in text


@pytest.mark.quick
class TestOption:
    def test_there_is_no_cap_by_default(self) -> None:
        assert TfGuard().gpu_memory_limit_mib is None
        text = str(TfGuard.class_traits()["gpu_memory_limit_mib"].help)
        assert "MiB per GPU" in text
        assert "in one kernel" in text

    @pytest.mark.parametrize("value", ["8192", "0", "-5", '"much"'])
    def test_it_is_a_number_of_mib(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str
    ) -> None:
        monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
        (tmp_path / "jupyter_tfguard_config.json").write_text(
            f'{{"TfGuard": {{"gpu_memory_limit_mib": {value}}}}}'
        )
        if value == "8192":
            assert load_settings().gpu_memory_limit_mib == 8192
        else:
            with pytest.raises(SettingsUnreadable, match="gpu_memory_limit_mib"):
                load_settings()

    def test_without_a_gpu_tensorflow_is_not_even_asked(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(growth_module, "gpu_present", lambda root="/": False)
        module: Any = SimpleNamespace()  # asking it for anything would fail
        GrowthSetting({}, wanted=True, limit_mib=8192).cap(module)


class TestInAKernel:
    """With the option in the per-user file, through the import hook."""

    def kernel(self, folder: Path) -> GuardedKernel:
        (folder / "config").mkdir()
        (folder / "config" / "jupyter_tfguard_config.json").write_text(
            '{"TfGuard": {"gpu_memory_limit_mib": 8192}}'
        )
        return GuardedKernel(folder)

    def test_a_failure_is_noted_once_and_the_kernel_goes_on(self, tmp_path: Path) -> None:
        self.kernel(tmp_path)
        with guarded_kernel(tmp_path) as kernel:
            ran = kernel.run(
                "from jupyter_tfguard.training import growth; growth.gpu_present = lambda root='/': True\n"
                "def broken(self, tensorflow): raise OSError('no such luck')\n"
                "growth.GpuCap.apply = broken\n"
                "import tensorflow as tf; print(int(tf.constant(3)))",
                timeout=180,
            )
            status = kernel.run("%tfguard status").stdout
            guard = kernel.recording().header["guard"]
            noted = kernel.problems()
        assert (ran.error, ran.stdout) == (None, "3\n")
        assert guard["problems"] == ["limit of GPU memory: no such luck"]
        assert status.count("no such luck") == 1
        assert noted.count("no such luck") == 1

    def test_it_is_set_after_the_users_import_and_reported(self, tmp_path: Path) -> None:
        self.kernel(tmp_path)
        with guarded_kernel(tmp_path) as kernel:
            ran = kernel.run(
                "import sys\n"
                "from jupyter_tfguard.training import growth; growth.gpu_present = lambda root='/': True\n"
                "class Late:\n"
                "    def find_spec(self, name, path=None, target=None):\n"
                "        if name == 'tensorflow.python.eager.context':\n"
                "            sys.meta_path.remove(self)\n"
                "            import tensorflow.python.pywrap_tfe as native\n"
                "            native.TF_ListPhysicalDevices = lambda: [b'/physical_device:CPU:0', b'/physical_device:GPU:0']\n"
                "sys.meta_path.insert(0, Late())\n"
                "import tensorflow as tf\n"
                "from tensorflow.python.eager import context\n"
                "print(tf.config.get_logical_device_configuration(tf.config.list_physical_devices('GPU')[0]))\n"
                "print(context.context()._context_handle)",
                timeout=180,
            )
            status = kernel.run("%tfguard status").stdout
            growth = kernel.recording().header["guard"]["growth"]
        assert ran.error is None, ran.traceback
        assert "memory_limit=8192" in ran.stdout
        assert ran.stdout.splitlines()[-1] == "None"
        assert growth == {"state": "capped", "text": f"{TEXT}, allocated as needed"}
        assert growth["text"] in status
