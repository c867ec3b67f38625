"""The results as pictures: `python -m bench.plots` (`make bench-plots`).

From the newest results of each kind below `bench/results`: the throughput of every Nexmark query beside its peers,
and the time of a tick against the size of the tables, beside that of computing the query anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

from bench.workspace import BENCH

_IMAGES = BENCH.parent / "docs" / "images"
_PEERS = {
    "Spark's batch answer": "#d0d7de",
    "Headwater": "#0b6e99",
    "Flink, state on the heap": "#e8a87c",
    "Flink, RocksDB and checkpoints": "#c0562f",
    "Structured Streaming": "#8e7cc3",
}
_WIDTH = 0.17


def newest(name: str) -> dict[str, Any]:
    """The last written results of a benchmark."""
    files = sorted((BENCH / "results").rglob(f"{name}-*.json"), key=lambda file: file.name)
    if not files:
        raise SystemExit(f"no results of {name} yet: run `make bench-{name}`")
    found: dict[str, Any] = json.loads(files[-1].read_text())
    return found


def nexmark() -> Path:
    """Events a second of each query, on a logarithmic scale."""
    rates: dict[str, dict[str, float]] = {}
    for line in newest("nexmark")["lines"]:
        detail = line["detail"]
        if "query" not in detail:
            continue
        one = rates.setdefault(detail["query"], {})
        one["Headwater"], one["Spark's batch answer"] = detail["rate"], detail["batch"]
        if isinstance(detail.get("native"), float):
            one["Structured Streaming"] = detail["native"]
        for kind, name in (("rocksdb", "Flink, RocksDB and checkpoints"), ("hashmap", "Flink, state on the heap")):
            if ran := detail.get(f"flink {kind}"):
                one[name] = detail["events"] / ran["seconds"]
    figure, axes = plt.subplots(figsize=(13, 4.5), layout="constrained")
    for place, (peer, color) in enumerate(_PEERS.items()):
        places = [number + (place - 2) * _WIDTH for number in range(len(rates))]
        axes.bar(places, [one.get(peer, 0) / 1e6 for one in rates.values()], _WIDTH, label=peer, color=color)
    axes.set_yscale("log")
    axes.set_ylabel("million events a second")
    axes.set_xticks(range(len(rates)), list(rates))
    axes.grid(axis="y", alpha=0.3)
    axes.legend(ncols=len(_PEERS), loc="upper center", bbox_to_anchor=(0.5, 1.12), frameon=False)
    return _written(figure, "nexmark")


def change() -> Path:
    """Seconds of a tick and of a recomputation, by the size of the tables."""
    measured: dict[str, list[dict[str, Any]]] = {}
    for line in newest("change")["lines"]:
        if "smallest" in line["detail"]:
            measured[line["detail"]["smallest"]["query"]] = list(line["detail"].values())
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for number, (query, ones) in enumerate(measured.items()):
        scales, color = [one["scale"] for one in ones], f"C{number}"
        axes.plot(scales, [median(one["ticks"]) for one in ones], "o-", color=color, label=query.upper())
        if all(one["recompute"] for one in ones):
            axes.plot(scales, [one["recompute"] for one in ones], "x--", color=color)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(scales, [f"SF {scale:g}" for scale in scales])
    axes.set_ylabel("seconds")
    axes.set_title("The same change: a tick (line), the query anew (dashes)", fontsize=11)
    axes.grid(alpha=0.3)
    axes.legend(ncols=2, frameon=False)
    return _written(figure, "tick-time")


def _written(figure: Any, name: str) -> Path:
    _IMAGES.mkdir(parents=True, exist_ok=True)
    path = _IMAGES / f"{name}.png"
    figure.savefig(path, dpi=110)
    return path


def main() -> None:
    """Draw both."""
    for path in (nexmark(), change()):
        print(f"written to {path.relative_to(BENCH.parent)}")


if __name__ == "__main__":
    main()
