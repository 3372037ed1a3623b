"""Print the tables of docs/scaling.md, or write them into the page; draw its picture."""

import sys
from argparse import ArgumentParser
from pathlib import Path

from benchmarks.pictures import canvas, scaling
from benchmarks.scaling import page


def main(words: list[str]) -> int:
    parser = ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--seed", type=int, default=page.SEED, help=f"default: {page.SEED}")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="replace the tables in this page")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="write the picture there")
    options = parser.parse_args(words)
    tables = page.tables(options.seed)
    if options.write:
        text = options.write.read_text(encoding="utf-8")
        options.write.write_text(page.replaced(text, tables), encoding="utf-8")
    else:
        sys.stdout.write("\n".join(f"{name}\n\n{table}" for name, table in tables.items()))
    if options.into:
        try:
            path = scaling.draw(page.grid(options.seed), options.into)
        except canvas.NoMatplotlib as exc:
            sys.stderr.write(f"{exc}\n")
            return 1
        sys.stderr.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
