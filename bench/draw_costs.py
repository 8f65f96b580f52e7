#!/usr/bin/env python3
"""draw_costs.py > docs/images/cost_against_bits.svg

What a step of `text-64k`, as it was until aea1deb, costs with some settings,
and what 600 of them buy, of the rows in bench/results.
tests/house/documents_test.py demands that the committed picture is what this
prints.
"""
from drawing import (BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, picture, rows,
                     text)

NAMES = {"": "as it was", "model.short_convolution=0": "no convolutions",
         "lsh.local_heads=other": "local_heads=other",
         "lsh.n_buckets=8192": "8,192 buckets",
         "lsh.rounds=1 lsh.local_heads=other": "1 round, other"}
TIMED = "ebf2d1c"
PLAIN, NEAR, FAR = "#222222", "#09577f", "#d1495b"
FASTEST, SLOWEST = 48, 62  # ms


def times():
    """Milliseconds of a step by settings, the least of each, on one machine."""
    least = {}
    for row in rows("text-64k-costs-h200.jsonl"):
        if (row.get("commit"), row.get("machine")) == (TIMED, 1):
            of = row["settings"]
            least[of] = min(least.get(of, 1e9), 1e3 * row["step_s"])
    return least


def bought():
    """(bits, on a repeat near, and far) by settings, after 600 steps."""
    found = {}
    for row in rows("text-64k-costs-h200.jsonl"):
        if "recall" not in row:
            continue
        repeat = {part["distance"]: part["repeat"] for part in row["recall"]
                  if part["rounds"] == 2}
        found[row["settings"]] = (row["validation"]["600"], repeat[1024],
                                  repeat[32768])
    return found


class Panel:
    def __init__(self, left, title, unit, low, high, marks):
        self.left, self.low, self.high = left, low, high
        self.out = [text(left + LEFT, 22, title, weight="bold", size=14),
                    text(left + LEFT, 40, unit, size=12, colour="#555")]
        for mark in marks:
            self.out.append(
                f'<line x1="{self.x(FASTEST):.1f}" x2="{self.x(SLOWEST):.1f}" '
                f'y1="{self.y(mark):.1f}" y2="{self.y(mark):.1f}" '
                f'stroke="#e3e3e3"/>')
            self.out.append(text(left + LEFT - 6, self.y(mark) + 4,
                                 f"{mark:g}", anchor="end"))
        for ms in range(FASTEST, SLOWEST + 1, 2):
            self.out.append(text(self.x(ms), HEIGHT - BOTTOM + 18, str(ms),
                                 anchor="middle"))
        self.out.append(text(self.x((FASTEST + SLOWEST) / 2), HEIGHT - 8,
                             "ms a step", anchor="middle", colour="#555"))

    def x(self, ms):
        share = (ms - FASTEST) / (SLOWEST - FASTEST)
        return self.left + LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, bits):
        share = (bits - self.low) / (self.high - self.low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    def point(self, ms, bits, colour, name):
        x, y = self.x(ms), self.y(bits)
        self.out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" '
                        f'fill="{colour}"/>')
        if name:
            self.out.append(text(x, y - 9, name, anchor="middle", size=11,
                                 colour=colour))


def main():
    ms, results = times(), bought()
    one = Panel(0, "Text", "validation bits per byte after 600 steps", 1.54,
                1.6, (1.54, 1.56, 1.58, 1.6))
    two = Panel(WIDTH, "Text that comes again",
                "bits per byte, 2 rounds at evaluation", 0.3, 0.9,
                (0.3, 0.5, 0.7, 0.9))
    for of, name in NAMES.items():
        bits, near, far = results[of]
        one.point(ms[of], bits, PLAIN, name)
        two.point(ms[of], far, FAR, "")
        two.point(ms[of], near, NEAR, name)
    for row, (colour, words) in enumerate(((FAR, "32,768 bytes later"),
                                           (NEAR, "1,024 bytes later"))):
        two.out.append(text(2 * WIDTH - RIGHT, TOP + 12 + 16 * row, words,
                            anchor="end", colour=colour, weight="bold"))
    print(picture(2 * WIDTH, HEIGHT, "What a step of text-64k costs, and what "
                  "600 of them buy", one.out + two.out))


if __name__ == "__main__":
    main()
