"""The machine that the measurements were made on."""

import os
import re
from pathlib import Path

from ..common.session import value


def field(path, name):
    found = re.search(rf"^{name}\s*:\s*(.*)$", Path(path).read_text(), re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def storage(directory):
    """The file system, device and kind of device that a directory is on."""
    device = os.stat(directory).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    kind, source = "unknown", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == number:
            kind, source = rest.split()[:2]
            break
    block = Path(f"/sys/dev/block/{number}").resolve()
    # A partition's directory is in that of its disk.
    disk = block if (block / "queue").is_dir() else block.parent
    text = f"{kind} on {source}"
    if (disk / "queue/rotational").exists():
        model = disk / "device/model"
        name = model.read_text().strip() if model.exists() else disk.name
        said = {"0": "not rotational", "1": "rotational, says the kernel"}
        text += f" ({name}, {said[(disk / 'queue/rotational').read_text().strip()]})"
    return text


def describe(conn):
    """A dictionary of strings, which are the same in all runs on the same machine with the
    same server."""
    kilobytes = int(field("/proc/meminfo", "MemTotal").split()[0])
    hypervisor = re.search(r"^flags\s*:.* hypervisor( |$)", Path("/proc/cpuinfo").read_text(),
                           re.MULTILINE)
    return {
        "Processor": f"{field('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores"
                     + (", a virtual machine" if hypervisor else ""),
        "Memory": f"{kilobytes / 1024 ** 2:.1f} GiB",
        "Kernel": f"{os.uname().sysname} {os.uname().release}",
        "Storage": storage(value(conn, "SHOW data_directory")),
        "Server": value(conn, "SELECT version()"),
        "Pages": f"{value(conn, 'SHOW block_size')} bytes, checksums "
                 f"{value(conn, 'SHOW data_checksums')}",
    }
