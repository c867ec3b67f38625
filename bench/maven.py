"""Jars from Maven: coordinates in, a directory of jars out, resolved once and kept in `bench/.cache`."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from bench.progress import say
from bench.workspace import CACHE, CannotMeasure

_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>headwater.bench</groupId><artifactId>{name}</artifactId><version>1</version>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""

_DEPENDENCY = """    <dependency>
      <groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version>{exclusions}
    </dependency>"""

_ALONE = """
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"""


@dataclass(frozen=True)
class Artifact:
    """A Maven coordinate; `alone` leaves out what it depends on."""

    group: str
    artifact: str
    version: str
    alone: bool = False

    def dependency(self) -> str:
        """Write the coordinate as a pom's dependency element."""
        exclusions = _ALONE if self.alone else ""
        return _DEPENDENCY.format(
            group=self.group, artifact=self.artifact, version=self.version, exclusions=exclusions
        )


def java() -> str:
    """Find the Java launcher, or say that there is none."""
    found = shutil.which("java")
    if found is None:
        message = "no java on PATH"
        raise CannotMeasure(message)
    return found


def jars(name: str, artifacts: tuple[Artifact, ...]) -> Path:
    """Give the directory `bench/.cache/<name>` with the artifacts' jars, resolving them if the pom is new.

    The pom is written last, so a directory that has one is complete.
    """
    directory = CACHE / name
    pom = _POM.format(name=name, dependencies="\n".join(a.dependency() for a in artifacts))
    stamp = directory / "pom.xml"
    if stamp.exists() and stamp.read_text() == pom:
        return directory
    maven = shutil.which("mvn")
    if maven is None:
        message = f"the jars of {name} are not in bench/.cache and there is no mvn on PATH to get them"
        raise CannotMeasure(message)
    say(f"resolving the jars of {name} with Maven")
    shutil.rmtree(directory, ignore_errors=True)
    work = CACHE / f"{name}.pom"
    work.mkdir(parents=True, exist_ok=True)
    (work / "pom.xml").write_text(pom)
    command = [maven, "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={directory}"]
    result = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        reason = (result.stdout + result.stderr).strip().splitlines()
        message = f"Maven could not resolve the jars of {name}: {reason[0] if reason else 'no output'}"
        raise CannotMeasure(message)
    shutil.move(work / "pom.xml", stamp)
    work.rmdir()
    return directory
