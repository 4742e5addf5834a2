"""Extract an archive that came from anywhere, in a process with limits.

    python -IS unpack.py ARCHIVE INTO

Reading an archive may take any amount of memory and time, so this process has little of both.
If it cannot be extracted, the exit code is 1, and standard output says why. It needs only
Python's standard library, so that it starts quickly.
"""

from __future__ import annotations

import errno
import resource
import sys
import tarfile
from collections.abc import Iterator

MOST_MEMORY, MOST_SECONDS = 320 << 20, 30
MOST_FILES, MOST_BYTES = 20_000, 256 << 20  # a run of all studies has 900 files, 6 MiB


class Refused(Exception):
    """Why an archive or a folder is refused."""


def members(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members of an archive. Raises Refused at a link or a device, and if they are many."""
    left = MOST_BYTES
    names = set[str]()
    for number, member in enumerate(tar):
        left -= member.size
        if left < 0 or number >= MOST_FILES:
            raise Refused(f"it unpacks to more than {MOST_BYTES >> 20} MiB or {MOST_FILES:,} files")
        if member.name in names:
            raise Refused(f"it holds {member.name!a} twice")
        if member.isreg() and not member.issparse():
            names.add(member.name)
        elif not member.isdir():
            raise Refused(f"it holds {member.name!a}, which is not part of a run")
        yield member


def main(archive: str, into: str) -> int:
    """Extract an archive with this process's limits, and say why not; return the exit code.

    It is the error's number if there is no room.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    try:
        with tarfile.open(archive, "r|*") as tar:
            tar.extractall(into, members(tar), filter="data")
    except MemoryError:
        print(f"reading it takes more than {MOST_MEMORY >> 20} MiB of memory")
    except Refused as why:
        print(why)
    except tarfile.FilterError as error:
        print(f"it holds {error.tarinfo.name!a}, which is not part of a run")
    except Exception as error:  # an archive can make tarfile raise anything
        number = getattr(error, "errno", None)
        if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return int(number)
        print(f"it is not an archive of a run: {ascii(str(error))[1:-1][:200]}")
    else:
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
