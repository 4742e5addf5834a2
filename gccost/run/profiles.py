"""Read the CPU profiles that Go writes (pprof's profile.proto, gzipped).

The protobuf library decodes the wire format; `_SCHEMA` has the used fields, with their
numbers in profile.proto. A run contains the raw profiles, for `go tool pprof`.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from google.protobuf.message import DecodeError

from gccost.errors import GccostError
from gccost.run.schema import printable

# The errors of an unreadable, truncated or damaged gzipped file, and of one that is none.
_UNREADABLE = (OSError, EOFError, zlib.error, KeyError, IndexError, ValueError)
_CLOSURE = re.compile(r"\.func\d")  # in the name of a function without one of its own
# Bytes of a profile, and four times the functions on all its stacks. 160,000 stacks of 64
# functions take a third of the first, and 61 % of the second.
MOST = 64 << 20
_LONGEST = 10_000  # characters of a function's name
# What files that are no profile.proto are, by how they begin.
_OTHERS = {
    rb"PERFILE2": "it is a recording of perf",
    rb"go 1\.\d+ trace": "it is an execution trace; to see it: go tool trace FILE",
    rb"\x7fELF": "it is a program",
    rb"(\0{8}|\0{4})\x03\0": "it is a CPU profile in the format of 2016 and before; "
    "to convert it: go tool pprof -proto PROGRAM FILE > cpu.pb.gz",
    rb"[\t\n\r -~\x80-\xff]{512}|[\t\n\r -~\x80-\xff]+\Z": "it is a text; to convert a CPU "
    "profile in a format of text: go tool pprof -proto PROGRAM FILE > cpu.pb.gz",
}

# The messages and fields of profile.proto that are used, with their numbers there.
_SCHEMA = """
name: "gccost/profile.proto" package: "gccost.pprof" syntax: "proto3"
message_type {
  name: "ValueType"
  field { name: "type" number: 1 type: TYPE_INT64 }
  field { name: "unit" number: 2 type: TYPE_INT64 }
}
message_type {
  name: "Sample"
  field { name: "location_id" number: 1 label: LABEL_REPEATED type: TYPE_UINT64 }
  field { name: "value" number: 2 label: LABEL_REPEATED type: TYPE_INT64 }
}
message_type {
  name: "Line"
  field { name: "function_id" number: 1 type: TYPE_UINT64 }
  field { name: "line" number: 2 type: TYPE_INT64 }
}
message_type {
  name: "Location"
  field { name: "id" number: 1 type: TYPE_UINT64 }
  field { name: "line" number: 4 label: LABEL_REPEATED type_name: "Line" }
}
message_type {
  name: "Function"
  field { name: "id" number: 1 type: TYPE_UINT64 }
  field { name: "name" number: 2 type: TYPE_INT64 }
}
message_type {
  name: "Profile"
  field { name: "sample_type" number: 1 label: LABEL_REPEATED type_name: "ValueType" }
  field { name: "sample" number: 2 label: LABEL_REPEATED type_name: "Sample" }
  field { name: "location" number: 4 label: LABEL_REPEATED type_name: "Location" }
  field { name: "function" number: 5 label: LABEL_REPEATED type_name: "Function" }
  field { name: "string_table" number: 6 label: LABEL_REPEATED type: TYPE_BYTES }
}
"""


@dataclass(frozen=True)
class Profile:
    """A CPU profile: stacks of function names, the outermost first, with their time in ns.

    `unnamed` is the time of the samples without a function's name, which are left out, and
    `one_sample` the mean time of one. If the profile does not say how much time a sample
    stands for, it is not `timed`: all times are numbers of samples.
    """

    stacks: tuple[tuple[tuple[str, ...], int], ...]
    unnamed: int
    one_sample: float
    timed: bool

    @property
    def total(self) -> int:
        """The total sampled time in ns."""
        return sum(value for _, value in self.stacks)

    @cached_property
    def names(self) -> frozenset[str]:
        """The functions on any stack."""
        return frozenset(chain.from_iterable(stack for stack, _ in self.stacks))

    def share(
        self, functions: Iterable[str], within: Iterable[str] = (), of: Iterable[str] = ()
    ) -> float:
        """The share (0 to 1) of the time in stacks that contain any of the functions.

        With `within`, a stack must also contain any of those. With `of`, the share is of the
        stacks that contain any of those, and NaN if there are none. A name that ends in "*"
        matches all names with that prefix, but not those of closures: they may run elsewhere.
        """
        wanted = [*map(self._named, [functions, within] if within else [functions])]
        whole = [(frozenset(stack), value) for stack, value in self.stacks]
        if of := tuple(of):
            base = self._named(of)
            whole = [(stack, value) for stack, value in whole if stack & base]
        inside = sum(value for stack, value in whole if all(stack & names for names in wanted))
        total = sum(value for _, value in whole)
        return inside / total if total else float("nan")

    def _named(self, names: Iterable[str]) -> frozenset[str]:
        """The functions on any stack that match these names."""
        exact = {name for name in names if not name.endswith("*")}
        starts = tuple(name.removesuffix("*") for name in names if name not in exact)
        open_ = (n for n in self.names if n.startswith(starts) and not _CLOSURE.search(n))
        return frozenset([*(self.names & exact), *open_])


def read(path: Path) -> Profile:
    """Read a profile. Raises GccostError if the file is not a CPU profile."""
    try:
        with path.open("rb") as file:
            return decode(unzipped(file.read(MOST + 1)))
    except _UNREADABLE as error:
        raise GccostError(
            f"this is not a CPU profile that Go wrote: {error}",
            str(path),
            "remove the file; the next measuring makes another",
        ) from None


def unzipped(data: bytes) -> bytes:
    """Data that may be gzipped; ValueError if it is larger than a profile can be."""
    if data.startswith(b"\x1f\x8b"):
        data = gzip.GzipFile(fileobj=BytesIO(data)).read(MOST + 1)
    if len(data) > MOST:
        raise ValueError(f"it is larger than {MOST >> 20} MiB")
    return data


def decode(data: bytes) -> Profile:
    """Decode a profile.proto that is not gzipped; raises one of _UNREADABLE if it is another."""
    for begins, what in _OTHERS.items():
        if re.match(begins, data):
            raise ValueError(what)
    message = _message()()
    try:
        message.ParseFromString(data)
        return _profile(message)
    except DecodeError:
        raise ValueError("it is not in the format profile.proto, or is damaged") from None
    except LookupError:
        raise ValueError("it is damaged: it refers to an entry that it does not have") from None


def _profile(message: Any) -> Profile:
    strings = dict(enumerate(message.string_table))

    def text(*numbers: int) -> str:
        joined = b"/".join(strings[number] for number in numbers)
        return printable(joined.decode(errors="replace"), _LONGEST)

    kinds = [text(kind.type, kind.unit) for kind in message.sample_type]
    timed = kinds.count("cpu/nanoseconds") == 1
    if not timed and kinds != ["samples/count"]:
        raise ValueError(f"it holds {', '.join(kinds) or 'nothing':.300}, not cpu/nanoseconds once")
    values = [dict(zip(kinds, sample.value, strict=False)) for sample in message.sample]
    times = [each["cpu/nanoseconds" if timed else "samples/count"] for each in values]
    if min(times, default=0) < 0:
        raise ValueError("it is the difference of two profiles: it has values below zero")
    functions = {function.id: text(function.name) for function in message.function}
    samples = list(zip(_stacks(message, functions), times, strict=True))
    return Profile(
        tuple((stack, time) for stack, time in samples if time and any(stack)),
        sum(time for stack, time in samples if not any(stack)),
        sum(times) / max(sum(each.get("samples/count", 1) for each in values), 1),
        timed,
    )


def _stacks(message: Any, functions: Mapping[int, str]) -> Iterator[tuple[str, ...]]:
    # A location's lines start at the innermost inlined call, a sample's locations at the leaf.
    locations = {
        loc.id: [functions[line.function_id] for line in reversed(loc.line)]
        for loc in message.location
    }
    left = MOST // 4
    for sample in message.sample:
        outward = map(locations.__getitem__, reversed(list(sample.location_id)))
        yield (stack := tuple(islice(chain.from_iterable(outward), left)))
        left -= len(stack)
    if left == 0:
        raise ValueError("its stacks have too many functions")


@cache
def _message() -> type[Any]:
    file = text_format.Parse(_SCHEMA, descriptor_pb2.FileDescriptorProto())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    descriptor = pool.FindMessageTypeByName("gccost.pprof.Profile")
    return message_factory.GetMessageClass(descriptor)
