#!/usr/bin/env bash
# In pandas 3 a write to one of n slices of a DataFrame takes time that grows with n: it walks all slices.
#
# pandas 3.1.1 and 2.3.3, Python 3.11 or later, linux/amd64. Believed, from the documentation of Copy-on-Write: the
# first write to a slice copies the slice, so its cost depends on the slice's size. Seen: before it copies, pandas
# asks whether other objects share the values (BlockValuesRefs.has_reference), and answers by building anew the list
# of weak references to every slice that is alive, also of those that share no row. On 2 CPUs of an AMD EPYC a write
# to one of 1,000 slices of one row took 77 to 80 us, and to one of 16,000 337 to 353 us. With 2.3.3, which does not
# copy on write, it took 40 us in both cases.
# What to do: copy() each part when you cut a frame into many that you keep and change. The effect is gone then: a
# write to one of 16,000 copies took 29 to 30 us.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >slices.py <<'END'
import time
import warnings

import numpy as np
import pandas as pd

warnings.simplefilter("ignore")  # 2.3 warns of a write to a slice


def once(parts, copied):
    frame = pd.DataFrame({"a": np.zeros(parts), "b": np.zeros(parts)})
    slices = [frame.iloc[row : row + 1] for row in range(parts)]
    if copied:
        slices = [part.copy() for part in slices]
    began = time.perf_counter()
    for part in slices[-500:]:
        part.iloc[0, 0] = 1.0
    return (time.perf_counter() - began) / 500


def least(parts, copied=False):
    """The least of five: seconds of a write to one of the slices."""
    return min(once(parts, copied) for _ in range(5))


few, many, copied = least(1_000), least(16_000), least(16_000, copied=True)
print(f"pandas {pd.__version__}: a write takes {few * 1e6:.0f} us with 1,000 slices,"
      f" {many * 1e6:.0f} us with 16,000, {copied * 1e6:.0f} us with 16,000 copies")
grows = many > 2 * few
assert grows == (int(pd.__version__[0]) >= 3)
assert not grows or many > 4 * copied
END

for version in 2.3.3 3.1.1; do
    python3 -m venv "$version"
    "$version/bin/pip" install -q --disable-pip-version-check "pandas==$version" numpy==2.3.4
    "$version/bin/python" slices.py
done
echo "as stated"
