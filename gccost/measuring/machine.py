"""Description of the machine that measures a run, and warnings about it.

Each run contains a description, which may be published, so it names no host, user or path.
Values that cannot be read are empty, not guessed.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gccost import paths, processes
from gccost.measuring import tools
from gccost.run.manifest import Description

GOARCH = {"x86_64": "amd64", "aarch64": "arm64"}  # as Go names what the kernel names
MOST_BYTES: Final = 4 << 30  # the most memory that a sample may retain on any machine

_SYSTEM = Path("/sys/devices/system/cpu")
_CGROUPS = Path("/sys/fs/cgroup")
_GIB = 2**30
_CACHE_KINDS = {"Data": "d", "Instruction": "i"}
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


def describe() -> Description:
    """Describe this machine's current state, as plain JSON.

    Sizes are in bytes, `cpu_quota` is in CPUs, and `load` is the mean number of runnable
    processes over 1, 5 and 15 minutes. None or an empty value means not set or unreadable.
    A cloud may give different processors one name ("AMD EPYC"); their family, model,
    stepping and caches distinguish them.
    """
    memory = _memory()
    compiler = tools.find_c_compiler()
    commit, dirty = _commit()
    return {
        "cpu": _cpu(),
        "cpu_family": _cpu_number("cpu family"),
        "cpu_model": _cpu_number("model"),
        "cpu_stepping": _cpu_number("stepping"),
        "caches": _caches(),
        "architecture": platform.machine(),
        "physical_cores": _cores(),
        "logical_cpus": os.cpu_count(),
        "allowed_cpus": allowed_cpus(),
        "cpu_quota": _cpu_quota(),
        "smt": _smt(),
        "governor": _governor(),
        "virtualisation": _virtualisation(),
        "load": [round(load, 2) for load in os.getloadavg()],
        "memory": _memory_total(),
        "memory_available": memory.get("MemAvailable"),
        "memory_limit": _memory_limit(),
        "swap": memory.get("SwapTotal"),
        "swap_used": memory.get("SwapTotal", 0) - memory.get("SwapFree", 0),
        "system": platform.system(),
        "release": _distribution(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()).strip(),
        "c_compiler": compiler.version if compiler else "",
        "c_compiler_source": compiler.source if compiler else "",
        "python": platform.python_version(),
        "commit": commit,
        "dirty": dirty,
    }


def memory_for_a_sample(description: Description) -> int:
    """The bytes that a sample may retain: half of the machine's usable memory, at most
    `MOST_BYTES`."""
    most = MOST_BYTES
    for name in ("memory", "memory_limit"):
        size = description.get(name)
        if isinstance(size, int) and size > 0:
            most = min(most, size // 2)
    return most


def warnings(machine: Description) -> list[str]:
    """Caveats about results from a machine, a sentence each."""
    return list(_warnings(machine))


def _warnings(machine: Description) -> Iterator[str]:
    cpus = machine.get("allowed_cpus") or 1
    phrase = f"{cpus} CPU" + "s" * (cpus != 1)
    if kind := machine.get("virtualisation"):
        yield f"This is a virtual machine ({kind}): its host may take the CPU away at any time."
    if cpus < 4:
        yield (
            f"Only {phrase} may be used: the garbage collector works less in parallel with the "
            "program than on the documents' machines."
        )
    if (quota := machine.get("cpu_quota")) and quota < cpus:
        yield (
            f"A quota of {quota:g} CPUs is set over {phrase}: processes that use more are paused, "
            "which makes variants with a concurrent collector look slower."
        )
    if (governor := machine.get("governor")) and governor != "performance":
        yield (
            f"The CPU's clock is governed by “{governor}”, not “performance”: it changes while "
            "measuring, so times of early and late samples differ."
        )
    if machine.get("smt"):
        yield (
            "Two threads share each core (SMT): a sample runs slower while the other thread is "
            "busy, the garbage collector's own threads included."
        )
    sizes = (machine.get("memory_available"), machine.get("memory_limit"))
    if (free := min(filter(None, sizes), default=2 * _GIB)) < 2 * _GIB:
        yield (
            f"Only {free / _GIB:.1f} GiB of memory are free: variants that keep garbage may swap "
            "or be killed."
        )
    if (swapped := machine.get("swap_used") or 0) > 64 * 2**20:
        yield (
            f"{swapped / _GIB:.1f} GiB are swapped out: a sample that waits for the disk is much "
            "slower."
        )
    if machine.get("dirty"):
        yield (
            "The clone has uncommitted changes, so nobody else can repeat this measurement exactly."
        )


# --- queries to the system --------------------------------------------------


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _output(*command: str) -> str:
    """A command's output; empty if it is missing or fails."""
    done = processes.ask(command, {**os.environ, "LC_ALL": "C"})
    return done.stdout.strip() if done else ""


def _field(text: str, name: str) -> str:
    """The value of the first `name : value` line."""
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return " ".join(value.split())
    return ""


def _cpuinfo(name: str) -> str:
    """A field of the first CPU."""
    return _field(_read(Path("/proc/cpuinfo")), name)


def _cpu() -> str:
    if sys.platform == "darwin":
        return _output("sysctl", "-n", "machdep.cpu.brand_string")
    # /proc/cpuinfo has no name on arm64, but lscpu does.
    return _cpuinfo("model name") or _field(_output("lscpu"), "Model name") or platform.processor()


def _cpu_number(name: str) -> int | None:
    with contextlib.suppress(ValueError):
        return int(_cpuinfo(name))
    return None


def _caches() -> dict[str, int]:
    """The sizes (bytes) of the first CPU's caches: L1d, L1i, L2, L3."""
    sizes = {}
    for index in _SYSTEM.glob("cpu0/cache/index[0-9]*"):
        level = _read(index / "level")
        size = re.fullmatch(r"(\d+)([KMG]?)", _read(index / "size"))
        if level.isdecimal() and size:
            kind = _CACHE_KINDS.get(_read(index / "type"), "")
            sizes[f"L{level}{kind}"] = int(size[1]) * _UNITS[size[2]]
    return dict(sorted(sizes.items()))


def allowed_cpus() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cores() -> int | None:
    """The number of physical cores."""
    if sys.platform == "darwin":
        return int(_output("sysctl", "-n", "hw.physicalcpu") or 0) or None
    siblings = {_read(p) for p in _SYSTEM.glob("cpu[0-9]*/topology/thread_siblings_list")}
    return len(siblings - {""}) or None


def _memory_total() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _memory() -> dict[str, int]:
    """The sizes (bytes) that /proc/meminfo names in kB."""
    sizes = re.findall(r"^(\w+): +(\d+) kB$", _read(Path("/proc/meminfo")), re.MULTILINE)
    return {name: int(size) * 1024 for name, size in sizes}


def _own_cgroups(controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of its parents.

    A limit on any of them applies. In a container the path may exist only on the host;
    missing folders are skipped.
    """
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, inside = line.split(":", 2)
        if not controllers:
            top = _CGROUPS
        elif controller in controllers.split(","):
            top = _CGROUPS / controller
        else:
            continue
        folder = top / inside.lstrip("/")
        yield folder
        yield from (above for above in folder.parents if above == top or top in above.parents)


def _cpu_quota() -> float | None:
    """The CPU quota in CPUs; None if there is none."""
    quotas = []
    for group in _own_cgroups("cpu"):
        # Version 2 writes "200000 100000" or "max 100000", version 1 two files.
        pair = _read(group / "cpu.max").split()
        if not pair:
            pair = [_read(group / "cpu.cfs_quota_us"), _read(group / "cpu.cfs_period_us")]
        with contextlib.suppress(ValueError, ZeroDivisionError):
            quota = int(pair[0]) / int(pair[1])
            if quota > 0:
                quotas.append(quota)
    return min(quotas, default=None)


def _memory_limit() -> int | None:
    """The memory limit in bytes; None if it does not limit the machine's memory."""
    limits = []
    total = _memory_total()
    for group in _own_cgroups("memory"):
        text = _read(group / "memory.max") or _read(group / "memory.limit_in_bytes")
        with contextlib.suppress(ValueError):
            limit = int(text)
            if limit < total:  # in version 1 "no limit" is larger than any machine's memory
                limits.append(limit)
    return min(limits, default=None)


def _smt() -> bool:
    if active := _read(_SYSTEM / "smt" / "active"):
        return active == "1"
    physical = _cores()
    return physical is not None and (os.cpu_count() or 1) > physical


def _governor() -> str:
    governors = {_read(path) for path in _SYSTEM.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(governors - {""}))


def _virtualisation() -> str:
    """The kind of hypervisor; empty if none is detected."""
    if sys.platform == "darwin":
        return "hypervisor" if _output("sysctl", "-n", "kern.hv_vmm_present") == "1" else ""
    if "microsoft" in platform.release().lower():
        return "wsl"
    # lscpu first: small containers also have it, unlike systemd's tool, and a machine should
    # have one fingerprint.
    if vendor := _field(_output("lscpu"), "Hypervisor vendor"):
        return vendor.lower()
    if (detected := _output("systemd-detect-virt", "--vm")) not in ("", "none"):
        return detected
    return "hypervisor" if "hypervisor" in _cpuinfo("flags").split() else ""


def _distribution() -> str:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return ""


def _commit() -> tuple[str, bool]:
    """The clone's commit, and whether the clone has uncommitted changes.

    The commit is empty if the package is not in its own clone.
    """
    # Without locks, because a killed git would leave the index locked.
    git = ("git", "--no-optional-locks", "-C", str(paths.ROOT))
    top = _output(*git, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != paths.ROOT:
        return "", False
    commit = _output(*git, "rev-parse", "--verify", "--quiet", "HEAD")
    return commit, bool(_output(*git, "status", "--porcelain", "--untracked-files=no"))
