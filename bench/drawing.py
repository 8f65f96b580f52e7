"""What the pictures of the documents are drawn of: rows of bench/results, and
words of SVG."""
import json
import pathlib

RESULTS = pathlib.Path(__file__).resolve().parent / "results"
WIDTH, HEIGHT = 400, 330  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 58, 46  # of its margins


def rows(name):
    with open(RESULTS / name) as file:
        return [json.loads(line) for line in file]


def text(x, y, words, anchor="start", size=12, colour="#222", weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
            f'font-weight="{weight}" fill="{colour}" '
            f'text-anchor="{anchor}">{words}</text>')


def picture(width, height, title, parts):
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" '
        f'viewBox="0 0 {width} {height}" '
        f'font-family="Helvetica, Arial, sans-serif">',
        f"<title>{title}</title>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>', *parts,
        "</svg>"])
