"""Draws docs/images/rooms.svg, and writes rooms.txt beside it, from the imports of today: `make docs-picture`.

Boxes are the parts of `headwater`, each above all that it imports. An arrow that follows from others (a uses b, b
uses c, and a uses c too) is left out of the picture and stands in the text.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.test_imports import ORDER, SOURCE, imports_between_parts

Graph = dict[str, set[str]]

IMAGES = Path(__file__).parent.parent.parent / "docs" / "images"
TEXT, PICTURE = IMAGES / "rooms.txt", IMAGES / "rooms.svg"
WORDS = ORDER[-1] | ORDER[-2]
"""What everybody may use: told once, without arrows."""
_BOX, _HEIGHT, _BEND, _GAP, _STEP, _EDGE = 104, 30, 12, 22, 62, 24
_SWEEPS = 60


def graph() -> Graph:
    """What each part imports of others. The package's own names, which `__init__` has, are called `headwater`."""
    found: Graph = {_called(part): set() for parts in ORDER for part in parts if _exists(part)}
    for _, _, own, other in imports_between_parts(SOURCE):
        found[_called(own)].add(_called(other))
    return found


def _exists(part: str) -> bool:
    return (SOURCE / part).is_dir() or (SOURCE / f"{part}.py").exists()


def _called(part: str) -> str:
    return "headwater" if part == "__init__" else part


def text(rooms: Graph) -> str:
    """A line for each part that imports others, in the order of the alphabet."""
    return "".join(f"{part}: {' '.join(sorted(used))}\n" for part, used in sorted(rooms.items()) if used)


def drawn(rooms: Graph) -> Graph:
    """The arrows of the picture: those that do not follow from others."""
    rooms = {part: used - WORDS for part, used in rooms.items() if part not in WORDS}
    below = {part: _below(rooms, part) for part in rooms}
    return {
        part: {each for each in used if not any(each in below[o] for o in used)} for part, used in rooms.items()
    }


def _below(rooms: Graph, part: str) -> set[str]:
    return rooms[part].union(*(_below(rooms, each) for each in rooms[part]))


@dataclass(eq=False)
class _Place:
    """A box, or a bend of an arrow that passes a layer."""

    layer: int
    name: str = ""
    x: float = 0.0
    up: list[_Place] = field(default_factory=list)
    down: list[_Place] = field(default_factory=list)

    @property
    def width(self) -> int:
        return _BOX if self.name else _BEND

    def wanted(self) -> float:
        """Between what it is connected with."""
        near = [each.x for each in (*self.up, *self.down)]
        return sum(near) / len(near) if near else self.x


def _layer(rooms: Graph, part: str) -> int:
    return 1 + max((_layer(rooms, each) for each in rooms[part]), default=-1)


def _places(rooms: Graph) -> list[list[_Place]]:
    """Boxes and bends by layers, the lowest first, connected."""
    boxes = {part: _Place(_layer(rooms, part), part) for part in sorted(rooms)}
    layers: defaultdict[int, list[_Place]] = defaultdict(list)
    for box in boxes.values():
        layers[box.layer].append(box)
    for part, used in sorted(rooms.items()):
        for each in sorted(used):
            bends = [_Place(layer) for layer in range(boxes[part].layer - 1, boxes[each].layer, -1)]
            for bend in bends:
                layers[bend.layer].append(bend)
            for upper, lower in pairwise([boxes[part], *bends, boxes[each]]):
                upper.down.append(lower)
                lower.up.append(upper)
    return [layers[number] for number in sorted(layers)]


def _arrange(layers: list[list[_Place]]) -> float:
    """Put everything near what it is connected with, and nothing over anything else; gives the width."""
    for layer in layers:
        _spread(layer)
    for sweep in range(_SWEEPS):
        for layer in layers if sweep % 2 else reversed(layers):
            for place in layer:
                place.x = place.wanted()
            layer.sort(key=lambda place: place.x)
            _spread(layer)
    left = min(place.x - place.width / 2 for layer in layers for place in layer)
    for layer in layers:
        for place in layer:
            place.x += _EDGE - left
    return max(place.x + place.width / 2 for layer in layers for place in layer) + _EDGE


def _spread(layer: list[_Place]) -> None:
    """Move places apart until they fit side by side, in their order, and as a whole where they were."""
    middle = sum(place.x for place in layer)
    for left, right in pairwise(layer):
        right.x = max(right.x, left.x + (left.width + right.width) / 2 + _GAP)
    shift = (sum(place.x for place in layer) - middle) / len(layer)
    for place in layer:
        place.x -= shift


def picture(rooms: Graph) -> str:
    """The whole as SVG."""
    layers = _places(drawn(rooms))
    width = _arrange(layers)
    top = (len(layers) - 1) * _STEP + _EDGE
    height = top + _STEP + 2 * _HEIGHT + _EDGE
    boxes = [place for layer in layers for place in layer if place.name]
    lines = [_arrow(box, each, top) for box in boxes for each in box.down]
    lines += [_box(box.name, box.x, top - box.layer * _STEP) for box in boxes]
    lines.append(_words(sorted(WORDS & set(rooms)), width, top + _STEP))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
    style = 'font-family="Helvetica, Arial, sans-serif" font-size="14" text-anchor="middle">'
    back = f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head + style, back, *lines, "</svg>\n"])


def _box(name: str, x: float, y: float) -> str:
    frame = f'<rect x="{x - _BOX / 2:.0f}" y="{y:.0f}" width="{_BOX}" height="{_HEIGHT}" rx="5"'
    return f'{frame} fill="#e8f0f8" stroke="#3b6ea5"/>{_label(name, x, y + 20)}'


def _words(words: list[str], width: float, y: float) -> str:
    """A box from edge to edge, with half of the words in each of two lines."""
    frame = f'<rect x="{_EDGE}" y="{y:.0f}" width="{width - 2 * _EDGE:.0f}" height="{2 * _HEIGHT}" rx="5"'
    half = (len(words) + 1) // 2
    lines = [" · ".join(words[:half]), " · ".join(words[half:])]
    labels = "".join(_label(line, width / 2, y + 25 + 22 * number) for number, line in enumerate(lines))
    return f'{frame} fill="#f6f6f3" stroke="#b8b8b0"/>{labels}'


def _label(words: str, x: float, y: float) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="#1b2a3a">{words}</text>'


def _arrow(box: _Place, first: _Place, top: float) -> str:
    """From a box down through bends to another box."""
    start = _port(box, box.down, first)
    points, before, place = [(start, top - box.layer * _STEP + _HEIGHT)], box, first
    while not place.name:
        points += [(place.x, top - place.layer * _STEP), (place.x, top - place.layer * _STEP + _HEIGHT)]
        before, place = place, place.down[0]
    end, tip = _port(place, place.up, before), top - place.layer * _STEP
    points.append((end, tip - 6))
    path = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for number, ((x, y), (to_x, to_y)) in enumerate(pairwise(points)):
        bend = (to_y - y) / 2
        curve = f" C{x:.0f} {y + bend:.0f} {to_x:.0f} {to_y - bend:.0f} {to_x:.0f} {to_y:.0f}"
        path += f" L{to_x:.0f} {to_y:.0f}" if number % 2 else curve
    head = f"M{end - 4:.0f} {tip - 7:.0f} L{end + 4:.0f} {tip - 7:.0f} L{end:.0f} {tip:.0f} Z"
    return f'<path d="{path}" fill="none" stroke="#8fa3b8" stroke-width="1.4"/><path d="{head}" fill="#8fa3b8"/>'


def _port(box: _Place, ends: list[_Place], end: _Place) -> float:
    """Where on its edge an arrow leaves or reaches a box: side by side, in the order of their other ends."""
    order = sorted(ends, key=lambda each: each.x).index(end)
    return box.x + (order + 1) * _BOX / (len(ends) + 1) - _BOX / 2


if __name__ == "__main__":
    TEXT.write_text(text(graph()))
    PICTURE.write_text(picture(graph()))
