"""Make the surnames by language that the package ships, from the PyPI package faker.

uv run --with faker==40.54.0 python -m tools.data.names
"""

import hashlib
import importlib
import re
import unicodedata

from mlax_tutorial.data.surnames import NAMES, TEST_PART, pack

# One locale of faker for each language: those with at least 400 surnames in Latin script.
LOCALES = {
    "Croatian": "hr_HR", "Dutch": "nl_NL", "English": "en_IE", "Estonian": "et_EE", "Finnish": "fi_FI",
    "French": "fr_FR", "German": "de_AT", "Irish": "ga_IE", "Italian": "it_IT", "Slovak": "sk_SK",
    "Spanish": "es_ES", "Swedish": "sv_SE", "Zulu": "zu_ZA",
}  # fmt: skip


LONGEST = 16  # what is longer is mostly a noble's whole title


def surnames(locale: str) -> set[str]:
    """The surnames that faker knows in a locale."""
    provider = importlib.import_module(f"faker.providers.person.{locale}").Provider
    names = {name for part in vars(provider) if "last_names" in part for name in getattr(provider, part)}
    names = {
        unicodedata.normalize("NFC", re.sub(r"\s+", " ", name.replace("’", "'")).strip()) for name in names
    }
    return {name for name in names if len(name) <= LONGEST and re.fullmatch(r"['\w -]+", name)}


def order(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def make() -> bytes:
    lists = {language: surnames(locale) for language, locale in LOCALES.items()}
    languages_of = {}
    for language, names in lists.items():
        for name in names:
            languages_of.setdefault(name.casefold(), set()).add(language)
    parts = {"train": [], "test": []}
    for label, names in enumerate(lists.values()):
        own = {name.casefold(): name for name in sorted(names) if len(languages_of[name.casefold()]) == 1}
        chosen = sorted(own.values(), key=order)
        border = round(len(chosen) * TEST_PART)
        parts["test"] += [(name, label) for name in chosen[:border]]
        parts["train"] += [(name, label) for name in chosen[border:]]
    ambiguous = sum(len(languages) > 1 for languages in languages_of.values())
    print(f"{ambiguous} names stand in two lists or more, and were left out")
    return pack(*(sorted(part, key=lambda pair: order(pair[0] + ".")) for part in parts.values()))


if __name__ == "__main__":
    packed = make()
    NAMES.write_bytes(packed)
    print(f"{NAMES}: {len(packed):,} bytes")
