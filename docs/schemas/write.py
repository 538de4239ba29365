"""Writes the JSON Schemas of the commands' ``--json`` output: ``python docs/schemas/write.py``."""

from pathlib import Path

from numaproof.cli.json_schemas import files

if __name__ == "__main__":
    for name, text in files().items():
        (Path(__file__).parent / name).write_text(text, "utf-8")
