"""Findings: what was found of one part of the machine or of a pipeline, as `doctor` and `verify` tell it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from headwater.cli.text import count
from headwater.errors import HeadwaterError


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part. A fault comes with what to do about it; something fine may come with a note."""

    name: str
    ok: bool
    said: str
    hint: str = ""


def fault(name: str, error: HeadwaterError | OSError) -> Finding:
    """The finding that an error is."""
    if isinstance(error, HeadwaterError):
        place = f"{error.where}: " if error.where else ""
        return Finding(name, False, f"{place}{error.what}", error.hint)
    return Finding(name, False, str(error), "check the permissions and the state of the disk")


def tell(findings: Iterable[Finding], *, as_json: bool, fine: str) -> int:
    """Print each finding as it is made, and at last how many faults there are, or that all is fine; 1 if any.

    As JSON they are printed all at once.
    """
    told = []
    for finding in findings:
        told.append(finding)
        if not as_json:
            _show(finding)
    faults = sum(not finding.ok for finding in told)
    if as_json:
        print(json.dumps({"ok": not faults, "checks": [asdict(finding) for finding in told]}, indent=2))
    else:
        print(f"{count(faults, 'fault')} found" if faults else fine)
    return 1 if faults else 0


def _show(finding: Finding) -> None:
    """A line for a finding, and one for what to do."""
    print(f"{'ok   ' if finding.ok else 'FAULT'}  {finding.name:<10} {finding.said}", flush=True)
    if finding.hint:
        print(f"{'':<18}{'' if finding.ok else 'do: '}{finding.hint}", flush=True)
