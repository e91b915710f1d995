"""The machine, and what else it does."""

import os
import platform
import time
from statistics import median


def machine():
    model = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as info:
        for entry in info:
            if entry.startswith("model name"):
                model = entry.split(":", 1)[1].strip()
                break
    return f"{len(os.sched_getaffinity(0))} processors ({model}), {platform.system()}" \
        f" {platform.release()}"


def busy(seconds=0.5):
    """The fraction of the processors' time that others use while this process sleeps."""
    def times():
        with open("/proc/stat") as stat:
            fields = [int(field) for field in stat.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]       # all, idle

    before = times()
    time.sleep(seconds)
    total, idle = (now - then for now, then in zip(times(), before))
    return 1 - idle / total


def load_average():
    """Of the last minute."""
    return os.getloadavg()[0]


def load_line(loads):
    return f"load average of the minute before a run: median {median(loads):.1f}," \
        f" at most {max(loads):.1f}; the benchmark itself is 1 to 3 of it"
