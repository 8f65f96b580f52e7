#!/usr/bin/env python3
"""draw_readme.py > docs/images/time_against_length.svg

The picture of the README: how time grows with length, for exact attention and
for ours, of the rows in bench/results. tests/house/documents_test.py demands
that the committed one is what this prints.
"""
import math

from drawing import (BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, picture, rows,
                     text)

EXACT, OURS = "#d1495b", "#09577f"


def attention():
    """Milliseconds, forward and backward, by length."""
    exact, ours = {}, {}
    for row in rows("attention-h200.jsonl"):
        if (row["d_head"], row["rounds"], row["local_window"],
                row["data"]) != (64, 4, 0, "random"):
            continue
        ours[row["length"]] = 1e3 * (row["forward_s"] + row["backward_s"])
        if row["exact_forward_s"] is not None:
            exact[row["length"]] = 1e3 * (row["exact_forward_s"] +
                                          row["exact_backward_s"])
    return exact, ours


def training():
    """Microseconds a token of a step, by length."""
    speed = [row for row in rows("figure5-h200.jsonl") if row["row"] == "speed"]
    return tuple({row["length"]: row["us_per_token"] for row in speed
                  if row["series"] == series} for series in ("full", "lsh-4"))


def short(length):
    for unit, size in ("M", 1 << 20), ("K", 1 << 10):
        if length >= size:
            return f"{length // size}{unit}"
    return str(length)


class Panel:
    def __init__(self, left, title, unit, xs, ys, labels):
        self.left, self.xs, self.ys = left, xs, ys
        self.out = [text(left + LEFT, 22, title, weight="bold", size=14),
                    text(left + LEFT, 40, unit, size=12, colour="#555")]
        for y, label in labels.items():
            self.line([(xs[0], y), (xs[1], y)], "#e3e3e3", 1)
            self.out.append(text(left + LEFT - 6, self.y(y) + 4, label,
                                 anchor="end"))
        x = xs[0]
        while x <= xs[1]:
            self.out.append(text(self.x(x), HEIGHT - BOTTOM + 18, short(x),
                                 anchor="middle"))
            x *= 4
        self.out.append(text(self.x(math.sqrt(xs[0] * xs[1])), HEIGHT - 8,
                             "tokens in a sequence", anchor="middle",
                             colour="#555"))

    def x(self, value):
        share = math.log(value / self.xs[0]) / math.log(self.xs[1] / self.xs[0])
        return self.left + LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        share = math.log(value / self.ys[0]) / math.log(self.ys[1] / self.ys[0])
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def line(self, points, colour, width):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.out.append(f'<polyline points="{path}" fill="none" '
                        f'stroke="{colour}" stroke-width="{width}"/>')

    def series(self, points, colour, name, at, dx, dy, anchor):
        """The name stands beside the point of the length `at`."""
        x, y = at, points[at]
        self.out.append(text(self.x(x) + dx, self.y(y) + dy, name,
                             anchor=anchor, colour=colour, weight="bold"))
        points = sorted(points.items())
        self.line(points, colour, 2.5)
        for x, y in points:
            self.out.append(f'<circle cx="{self.x(x):.1f}" '
                            f'cy="{self.y(y):.1f}" r="3.5" fill="{colour}"/>')


def main():
    exact, ours = attention()
    one = Panel(0, "Attention", "ms, forward and backward",
                (4096, 1 << 20), (0.1, 100),
                {0.1: "0.1", 1: "1", 10: "10", 100: "100"})
    one.series(exact, EXACT, "exact (cuDNN)", 65536, -10, -2, "end")
    one.series(ours, OURS, "LSH, 4 rounds", 65536, 10, 14, "start")
    exact, ours = training()
    two = Panel(WIDTH, "A training step", "µs a token",
                (1024, 1 << 22), (0.2, 4),
                {0.2: "0.2", 0.5: "0.5", 1: "1", 2: "2", 4: "4"})
    two.series(exact, EXACT, "exact (cuDNN)", 65536, -10, -2, "end")
    two.series(ours, OURS, "LSH, 4 rounds", 1 << 22, 0, 22, "end")
    print(picture(2 * WIDTH, HEIGHT, "Time against length on one H200: exact "
                  "attention and LSH attention", one.out + two.out))


if __name__ == "__main__":
    main()
