"""Build the measured Java programs.

Classes are compiled once for all JDKs. There is no random layout, because each JVM compiles
the program again while it runs, so every sample includes the variation between JVMs.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from gccost import paths, processes
from gccost.cases.sources import hash_of_java, java_sources
from gccost.errors import failed_build
from gccost.files import make_once, writing
from gccost.measuring import jdks
from gccost.measuring.builds import Run
from gccost.measuring.jdks import Jdk

JMH = "jmh"  # the program that needs JMH, and its folder


def build(program: str, javac: Jdk, run: Run = processes.run) -> Path:
    """Compile a program unless that is done, and return the folder of its classes and jars.

    Raises DiskFull (a GccostError) on a nearly full disk; see `builds.build`.
    """
    mark = hashlib.sha256(f"{hash_of_java([program])} {javac.version}".encode()).hexdigest()[:16]
    folder = paths.CACHE / "java" / f"{program}-{mark}"
    return make_once(folder, lambda into: _compile(program, javac, into, run))


def _compile(program: str, javac: Jdk, into: Path, run: Run) -> None:
    command = [str(javac.javac), "--release", jdks.COMPILED_FOR, "-d", str(into)]
    if program == JMH:
        # Next to the classes, so that both are found together.
        with writing(into):
            into.mkdir(parents=True)
            for jar in jdks.jmh().iterdir():
                shutil.copyfile(jar, into / jar.name)
        jars = os.pathsep.join(str(jar) for jar in sorted(into.glob("*.jar")))
        command += ["-classpath", jars, "-processorpath", jars]
    command += [str(path) for path in java_sources(program) if path.suffix == ".java"]
    done = run(command, env=jdks.environment())
    if done.returncode != 0:
        location = f"javasrc/{program} with javac {javac.version}"
        hint = "make doctor shows the JDKs that were found"
        raise failed_build(done, location, hint, [into.parent])
