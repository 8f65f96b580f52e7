"""doxygen_filter.py FILE.md: FILE as Doxygen wants it, for docs/Doxyfile.

Links to headings are written as GitHub names them, [text](page.md#its-heading);
Doxygen 1.9.4 has no such names. Each heading gets one, unique among all pages.
Links to what is no page, outside of docs/, become their text.
"""
import collections
import pathlib
import re
import sys

HEADING = re.compile(r"^(##+) (.+)$")
LINK = re.compile(r"\]\((?:[\w./-]*?([\w-]+)\.md)?#([\w-]+)\)")

RELATIVE = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#]+)[^)]*\)")
DOCS = pathlib.Path(__file__).resolve().parent


def without_outside(line, folder):
    def kept(link):
        target = (folder / link[2]).resolve()
        return link[0] if DOCS in target.parents else link[1]
    return RELATIVE.sub(kept, line)


def slug(heading):
    """The name that GitHub gives it."""
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return words.replace(" ", "-")


def main(path):
    page = pathlib.Path(path).stem
    code = False
    seen = collections.Counter()
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("```"):
            code = not code
        elif not code:
            line = without_outside(line, pathlib.Path(path).parent)
            line = LINK.sub(
                lambda link: f"](@ref {link[1] or page}--{link[2]})", line)
            if heading := HEADING.match(line):
                name = slug(heading[2])
                again = f"-{seen[name]}" if seen[name] else ""
                seen[name] += 1
                line += f" {{#{page}--{name}{again}}}"
        print(line)


if __name__ == "__main__":
    main(sys.argv[1])
