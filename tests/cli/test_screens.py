from __future__ import annotations

import json
import os

import pytest

from headwater.cli.live import Scene, Sight, TickSight, ViewSight
from headwater.cli.screens import JsonLines, Painting, PlainLines

TOPIC = Sight("orders", "table", 1234, 56.0, {"_op": "upsert", "id": 1})
VIEWS = [
    ViewSight(f"view{number}", 9, ["name", "cents"], ["cents"], [["x" * 40, "12"], ["y", "3"], ["z", "1"]])
    for number in range(5)
]
BEFORE = Scene(1.0, [TOPIC], "starting Spark …")
AFTER = Scene(9.0, [TOPIC], "", TickSight(7, 100, 0.2, 0.19, 500.0), VIEWS)


def test_plain_lines_say_what_is_waited_for_and_then_the_tick_and_the_views(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for scene in (BEFORE, AFTER):
        PlainLines().show(scene)
    before, after = capsys.readouterr().out.splitlines()
    assert before == "  1.0 s  orders 1,234 (+56/s)  starting Spark …"
    assert "tick 7: 100 rows in 0.200 s (median 0.190 s)  view0 9 rows, view1 9 rows" in after


def test_json_lines_have_the_views_with_their_first_rows(capsys: pytest.CaptureFixture[str]) -> None:
    JsonLines().show(AFTER)
    said = json.loads(capsys.readouterr().out)
    assert said["tick"]["number"] == 7
    assert said["views"][0] == {
        "name": "view0",
        "rows": 9,
        "top": [{"name": "x" * 40, "cents": "12"}, {"name": "y", "cents": "3"}, {"name": "z", "cents": "1"}],
    }


@pytest.mark.parametrize(("width", "height"), [(80, 24), (50, 10), (200, 60), (30, 3)])
def test_a_painting_fits_the_terminal_and_covers_the_one_before(
    width: int, height: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda *_, **__: os.terminal_size((width, height)))
    screen = Painting()
    painted = []
    for scene in (BEFORE, AFTER, BEFORE):
        screen.show(scene)
        painted.append(capsys.readouterr().out)
    sizes = [each.count("\n") for each in painted]
    assert sizes[2] >= sizes[1] >= sizes[0]
    assert max(sizes) < max(height, 4)
    assert painted[1].startswith(f"\x1b[{sizes[0]}F")
    for line in painted[1].removeprefix(f"\x1b[{sizes[0]}F").splitlines():
        assert len(line.removesuffix("\x1b[K")) < width
