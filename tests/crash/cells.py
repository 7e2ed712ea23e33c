"""Code for a kernel's cells, by which it ends, or seems to."""

from __future__ import annotations

EAT = (
    "import time\nheld = []\nwhile True:\n"
    "    held.append(bytearray(b'x' * (16 << 20)))\n    time.sleep(0.05)"
)
NEW = (
    "import ctypes\nlibrary = ctypes.PyDLL('libstdc++.so.6')\n"
    "library._Znwm.argtypes = [ctypes.c_size_t]\n"
)
XLA_TYPO = (
    "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_devices=2'\nimport tensorflow as tf\n"
    "tf.function(lambda x: x + x, jit_compile=True)(tf.ones(3))"
)
FILL = "try:\n    open('/dev/shm/data', 'wb', buffering=0).write(bytes(32 << 20))\n    open('/dev/shm/more', 'wb', buffering=0).write(b'x' * 8192)\nexcept OSError as full:\n    print(full)"
DEEP = "import ctypes\ndef descend(n):\n    return descend(n - 1) if n else ctypes.string_at(0)\ndescend(600)"
CAUGHT_RECURSION = (
    "def down(n): return down(n + 1)\ntry:\n    down(0)\nexcept RecursionError: pass\n"
)
IN_A_FORK = "import os, ctypes\nif (child := os.fork()) == 0:\n    {}\nos.waitpid(child, 0)\n"
MY_RECORDING = (
    "import glob, os\n"
    "folder, = glob.glob(os.environ['TFGUARD_DIR'] + f'/recordings/{os.getpid()}-*')\n"
)


def send(name: str) -> str:
    """A cell in which the kernel sends itself a signal."""
    return f"import os, signal; os.kill(os.getpid(), signal.{name})"


def by_default(name: str) -> str:
    """The same for a signal that Python ignores."""
    return (
        f"import os, signal\nsignal.signal(signal.{name}, signal.SIG_DFL)\n"
        f"os.kill(os.getpid(), signal.{name})"
    )


def program(code: str) -> str:
    """Code that runs another Python program whose stderr is the kernel's, and waits for its end."""
    return f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}])\n"


# --- what it says before


def says_natively(line: str, then: str = "import ctypes; ctypes.PyDLL(None).abort()") -> str:
    """A cell that writes a library's last line to fd 2, then ends."""
    return f"import os\nos.write(2, {(line + chr(10)).encode()!r})\n{then}"


def record(severity: str, text: str) -> str:
    """A cell that writes a record of TensorFlow's with the time of now, then aborts."""
    return (
        "import os, time, ctypes\n"
        f"line = f'{severity}0000 00:00:{{time.time():.6f}}    4711 {text}' + chr(10)\n"
        "os.write(2, line.encode())\nctypes.PyDLL(None).abort()"
    )


def says(*lines: str) -> str:
    """Code that writes lines natively, ``{pid}`` being the kernel's own."""
    text = "".join(f"{line}\n" for line in lines)
    return f"import os\nos.write(2, {text!r}.replace('{{pid}}', str(os.getpid())).encode())\n"


def stamped(line: str, seconds_ago: float) -> str:
    """Code that writes a record of TensorFlow's with a time of day of long ago."""
    return (
        "import os, time\n"
        f"then = time.time() - {seconds_ago}\n"
        "stamp = time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(then))\n"
        f"os.write(2, (stamp + '.123456: ' + {line!r} + chr(10)).encode())\n"
    )


def forged(text: str) -> str:
    """Code that writes a line into the system's log, as root may."""
    return (
        "import os\ntry:\n    log = os.open('/dev/kmsg', os.O_WRONLY)\n"
        f"    os.write(log, ('<3>' + {text!r} + chr(10)).replace('{{pid}}', str(os.getpid())).encode())\n"
        "except OSError:\n    pass\n"
    )
