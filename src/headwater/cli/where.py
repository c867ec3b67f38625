"""Which pipeline is meant: `--pipeline`, else HEADWATER_PIPELINE, else the only one in ./.headwater."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from headwater.cli.options import add_json
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater import Pipeline

_FOLDER = ".headwater"
_MARK = "headwater.db"


class WrongUsage(HeadwaterError):
    """The command was called in a way that cannot be meant; exit code 2."""


def add_where(parser: argparse.ArgumentParser) -> None:
    """The two options that every command about a pipeline has."""
    parser.add_argument(
        "--pipeline",
        metavar="PATH",
        help="the pipeline's folder (default: $HEADWATER_PIPELINE, else the only one in ./.headwater)",
    )
    add_json(parser)


def pipelines_here(here: str = ".") -> list[str]:
    """The folders of the pipelines below ./.headwater."""
    folder = os.path.join(here, _FOLDER)
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [path for name in names if is_pipeline(path := os.path.join(folder, name))]


def is_pipeline(path: str) -> bool:
    """Whether a pipeline lives in this folder, or what is left of one that lost its database."""
    if os.path.isfile(os.path.join(path, _MARK)):
        return True
    if not os.path.isdir(os.path.join(path, "log")):
        return False
    return bool(importlib.import_module("headwater.backends").topics_in(path))


def find(given: str | None, *, here: str = ".", environ: Mapping[str, str] | None = None) -> str:
    """The folder of the pipeline that is meant; `WrongUsage` if there is none or it could be several."""
    environ = os.environ if environ is None else environ
    for path, origin in ((given, "--pipeline"), (environ.get("HEADWATER_PIPELINE"), "HEADWATER_PIPELINE")):
        if path:
            if not is_pipeline(path):
                msg = f"there is no pipeline in {path}"
                raise WrongUsage(msg, where=origin, hint=f"a pipeline's folder contains {_MARK}")
            return path
    paths = pipelines_here(here)
    if not paths:
        msg = f"there is no pipeline in ./{_FOLDER}"
        hint = "go to the folder where yours was made, or name it: --pipeline PATH; `headwater demo` shows one"
        raise WrongUsage(msg, hint=hint)
    if len(paths) > 1:
        msg = f"there are {len(paths)} pipelines in ./{_FOLDER}: {', '.join(map(os.path.basename, paths))}"
        raise WrongUsage(msg, hint=f"choose one, for instance --pipeline {paths[0]}")
    return paths[0]


@contextlib.contextmanager
def opened(arguments: argparse.Namespace) -> Iterator[Pipeline]:
    """The pipeline that is meant, open; closed again at the end."""
    path = find(arguments.pipeline)
    pipeline: Pipeline = importlib.import_module("headwater.pipeline").reopen(path)
    with pipeline:
        yield pipeline
