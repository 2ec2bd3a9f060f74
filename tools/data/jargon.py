"""Make the part of the Jargon File that the package ships, from Debian's package dict-jargon.

apt-get download dict-jargon && dpkg-deb -x dict-jargon_*.deb FOLDER
.venv/bin/python -m tools.data.jargon FOLDER/usr/share/dictd
"""

import gzip
import hashlib
import re
import sys
from pathlib import Path

from mlax_tutorial.data.jargon_file import SIZES, TEXT, pack

DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
PLAIN = str.maketrans({
    "“": '"', "”": '"', "‘": "'", "’": "'", "´": "'", "`": "'", "·": "-", "—": "--", "™": "TM", "\xa0": " ", "\xad": None,
})  # fmt: skip
# A book for a classroom leaves out entries with these, and addresses on the web, which no model can guess.
LEFT_OUT = re.compile(
    r"fuck|shit|cunt|bitch|bastard|nigg|fag|whore|slut|penis|vagin|masturb|orgasm|porn|rape|nazi|suicid|sexual|intercourse|have sex|piss"
    r"|dick\b|cock\b|\bcum\b|https?:|www\.|ftp:",
    re.IGNORECASE,
)


def number(digits: str) -> int:
    """A number as dictd's index writes it."""
    value = 0
    for digit in digits:
        value = value * 64 + DIGITS.index(digit)
    return value


def entries(folder: Path) -> list[str]:
    """All entries, in the order of the file."""
    text = gzip.decompress((folder / "jargon.dict.dz").read_bytes())
    lines = (folder / "jargon.index").read_text(encoding="utf-8").splitlines()
    places = {
        tuple(map(number, line.split("\t")[1:])) for line in lines if not line.startswith("00-database")
    }
    return [text[start : start + length].decode() for start, length in sorted(places)]


def clean(entry: str) -> str | None:
    """One entry as ASCII, a line for each paragraph; None for one with a table, a poem or unusual letters."""
    # A quotation mark or a brace may stand alone at the end of a line.
    entry = re.sub(r"\s+([”’}])(?=\W)", r"\1", re.sub(r"([“{])\s+", r"\1", entry))
    head, *blocks = re.split(r"\n\s*\n", entry.translate(PLAIN).rstrip())
    paragraphs = []
    for block in blocks:
        lines = block.split("\n")
        if any(not re.match(r" {4}\S", line) for line in lines):
            return None
        paragraphs.append(" ".join(line.strip() for line in lines))
    head = " ".join(line.strip() for line in head.split("\n") if line.strip() != "//")
    text = "\n".join([re.sub(r"^(.*?) ?//, ", r"\1 ", head), *paragraphs])
    text = re.sub(r" {2,}", " ", text)
    return text + "\n\n" if paragraphs and text.isascii() and not LEFT_OUT.search(text) else None


def choose(texts: list[str]) -> tuple[str, str]:
    """Entries by their SHA-256 until each part is full, each part in the order of the file."""
    order = sorted(range(len(texts)), key=lambda index: hashlib.sha256(texts[index].encode()).hexdigest())
    parts = []
    for size in SIZES.values():
        chosen, length = [], 0
        while length + len(texts[order[0]]) <= size:
            chosen.append(order.pop(0))
            length += len(texts[chosen[-1]])
        parts.append("".join(texts[index] for index in sorted(chosen)))
    return tuple(parts)


def make(folder) -> bytes:
    texts = map(clean, entries(Path(folder)))
    return pack(*choose([text for text in texts if text]))


if __name__ == "__main__":
    packed = make(*sys.argv[1:])
    TEXT.write_bytes(packed)
    print(f"{TEXT}: {len(packed):,} bytes")
