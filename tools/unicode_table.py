#!/usr/bin/env python3
"""Writes reformer/score/unicode_table.h: what BLEU has to know of characters.

    tools/unicode_table.py [FOLDER] > reformer/score/unicode_table.h

The facts are the Unicode Character Database's: UnicodeData.txt (general
category, bidirectional class, simple lower case) and DerivedCoreProperties.txt
(Cased, Case_Ignorable) in FOLDER, by default /usr/share/unicode, where Debian's
package unicode-data has them. The table is part of the repository: building
needs neither this script nor that package.
"""

import sys
from pathlib import Path

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "/usr/share/unicode")


def characters():
    """(code point, fields) of each assigned one; blocks that the file gives by
    their first and last character are spelled out."""
    first = None
    for line in (FOLDER / "UnicodeData.txt").read_text().splitlines():
        fields = line.split(";")
        point = int(fields[0], 16)
        if fields[1].endswith(", First>"):
            first = point
            continue
        for each in range(first if first is not None else point, point + 1):
            yield each, fields
        first = None


def derived(wanted):
    """The code points of a property in DerivedCoreProperties.txt."""
    points = set()
    text = (FOLDER / "DerivedCoreProperties.txt").read_text()
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("#")[0].split(";")]
        if len(parts) < 2 or parts[1] != wanted:
            continue
        ends = [int(end, 16) for end in parts[0].split("..")]
        points.update(range(ends[0], ends[-1] + 1))
    return points


def ranges(points):
    out = []
    for point in sorted(points):
        if out and out[-1][1] == point - 1:
            out[-1][1] = point
        else:
            out.append([point, point])
    return out


def lower_ranges(pairs):
    """[first, last, step, change]: first, first + step, ... last all change by
    the same."""
    out = []
    for point, lower in pairs:
        change = lower - point
        if out and out[-1][3] == change:
            first, last, step, _ = out[-1]
            gap = point - last
            if gap in (1, 2) and (first == last or gap == step):
                out[-1][1:3] = [point, gap]
                continue
        out.append([point, point, 1, change])
    return out


def version():
    head = (FOLDER / "DerivedCoreProperties.txt").read_text().split("\n", 1)[0]
    return head.split("-")[-1].removesuffix(".txt").strip()


def print_table(kind, name, rows, form):
    print(f"inline constexpr {kind} {name}[] = {{")
    line = "   "
    for row in rows:
        cell = " {" + form(row) + "},"
        if len(line) + len(cell) > 80:
            print(line)
            line = "   "
        line += cell
    print(line)
    print("};\n")


def main():
    by_category = {"P": set(), "S": set(), "N": set()}
    spaces = set()
    lower = []
    for point, fields in characters():
        category, direction = fields[2], fields[4]
        if category[0] in by_category:
            by_category[category[0]].add(point)
        if category == "Zs" or direction in ("WS", "B", "S"):
            spaces.add(point)
        if fields[13]:
            lower.append((point, int(fields[13], 16)))

    print(f"""// Made by tools/unicode_table.py of the Unicode Character Database {version()}.
#pragma once

#include <cstdint>

namespace reformer::unicode {{

// clang-format off
struct Range {{
  char32_t first;
  char32_t last;
}};

// first, first + step, ... last become lower case by adding `change`.
struct LowerRange {{
  char32_t first;
  char32_t last;
  int32_t step;
  int32_t change;
}};
""")
    pair = lambda row: f"0x{row[0]:X}, 0x{row[1]:X}"
    for name, points in (
            ("kPunctuation", by_category["P"]), ("kSymbols", by_category["S"]),
            ("kNumbers", by_category["N"]), ("kSpaces", spaces),
            ("kCased", derived("Cased")),
            ("kCaseIgnorable", derived("Case_Ignorable"))):
        print_table("Range", name, ranges(points), pair)
    print_table("LowerRange", "kLower", lower_ranges(lower),
                lambda row: f"{pair(row)}, {row[2]}, {row[3]}")
    print("// clang-format on\n\n}  // namespace reformer::unicode")


main()
