"""Find control characters, and characters that only a wrongly decoded text has.

Such a text was written in UTF-8 and read in an encoding of one byte a character, so
that "für" became "fÃ¼r" (mojibake), or lost characters, which became U+FFFD.
"""

import functools
import re
import unicodedata

REPLACEMENT = "\ufffd"
# Encodings that text in UTF-8 is mistaken for; cp1252 stands for Latin 1, too.
_CODECS = ("cp1252", "cp1251", "cp1250", "cp1253", "mac_roman", "cp437")
# Letters of Slavic languages in cp1251.
_CYRILLIC = re.compile("[А-Яа-яЁёІіЇїЄєҐґЎўЈјЅѕЃѓЌќЉљЊњЋћЂђЏџ]+")
# UTF-8 bytes of these letters and of punctuation, read as cp1251.
_CYRILLIC_BYTES = re.compile("(?:[РС].|вЂ.)+")
# Second bytes, read as letters that words in capitals do not have.
_SECOND_BYTES = re.compile("[ЁёіїєґўјѕѓќљњћђџЅЃЌ]")


def control_characters(text: str) -> str:
    """Return the control characters and private-use characters of a text, but tabs.

    >>> control_characters("a\\x07b\\tc\\ue000")
    '\\x07\\ue000'
    """
    if text.isprintable():  # the usual case; the characters meant are not printable
        return ""
    return "".join(character for character in text if _is_control(character))


def mojibake(text: str) -> str:
    """Return the first wrongly decoded characters of a text, or "".

    These are the bytes of one character in UTF-8, or of several. Two characters in a
    row always count, but for those that correct Cyrillic text has. One alone counts
    only if it is a letter, a sign or a quotation mark of western languages, as correct
    text may have such bytes. They must not look like quotation marks or dashes after a
    letter, either.

    >>> mojibake("MÃ¼nchen"), mojibake("itâ€™s"), mojibake("РїСЂРёРІРµС‚")
    ('Ã¼', 'â€™', 'РїСЂРёРІРµС‚')
    >>> mojibake("NESCAFÉ®"), mojibake("déclaré»…"), mojibake("„der Buchstabe Ä“")
    ('', '', '')
    """
    if text.isascii() or not _suspects().search(text):  # nearly all texts
        return ""
    for codec in _CODECS:
        single, sequence = _patterns(codec)
        for characters in sequence.findall(text):
            if codec != "cp1251" or not _is_cyrillic(characters):
                return str(characters)
        if single and (match := single.search(text)):
            return match[0]
    return ""


def _is_cyrillic(characters: str) -> bool:
    """Return whether characters that look like misread UTF-8 are correct text.

    >>> _is_cyrillic("МІНІ"), _is_cyrillic("нії"), _is_cyrillic("РјРѕРё")
    (True, True, False)
    """
    if not _CYRILLIC.fullmatch(characters):
        return False
    has_first_bytes = _CYRILLIC_BYTES.fullmatch(characters)
    return not (has_first_bytes and _SECOND_BYTES.search(characters))


@functools.lru_cache(maxsize=10_000)
def _is_control(character: str) -> bool:
    return character != "\t" and unicodedata.category(character) in ("Cc", "Co")


def _characters(codec: str, first: int, last: int) -> str:
    """Return, for a regex set, the characters that a codec decodes from these bytes."""
    characters = set()
    for byte in range(first, last + 1):
        characters.add(bytes([byte]).decode(codec, errors="replace"))
        if codec == "cp1252":
            characters.add(chr(byte))
    characters.discard(REPLACEMENT)
    return "".join(map(re.escape, sorted(characters)))


@functools.lru_cache
def _suspects() -> re.Pattern[str]:
    """Return a pattern of the first two bytes of a character in any of the codecs."""
    first, second = (
        "".join(_characters(codec, *limits) for codec in _CODECS)
        for limits in ((0xC2, 0xF4), (0x80, 0xBF))
    )
    return re.compile(f"[{first}][{second}]")


@functools.lru_cache
def _patterns(codec: str) -> tuple[re.Pattern[str] | None, re.Pattern[str]]:
    """Return patterns of one wrongly decoded character, and of two or more in a row."""
    following = f"[{_characters(codec, 0x80, 0xBF)}]"
    group = (
        f"(?:[{_characters(codec, 0xC2, 0xDF)}]{following}"
        f"|[{_characters(codec, 0xE0, 0xEF)}]{following}{{2}}"
        f"|[{_characters(codec, 0xF0, 0xF4)}]{following}{{3}})"
    )
    sequence = re.compile(f"{group}{{2,}}")
    if codec != "cp1252":
        return None, sequence
    # Letters of Latin-1 and Latin Extended-A; general punctuation, the euro, ™; emoji;
    # a byte-order mark and U+FFFD.
    single = re.compile(
        f"[\u00c2-\u00c5](?![\u2010-\u203a\u00bb]){following}"
        f"|(?:\u00c3|(?<=\\w)[\u00c2\u00c4\u00c5]){following}(?=\\w)"
        "|\u00e2(?:\u20ac|\u0080)."
        "|\u00e2\u201a\u00ac|\u00e2\u201e\u00a2"
        f"|\u00f0(?:\u0178|\u009f){following}{{2}}"
        "|\u00ef\u00bb\u00bf|\u00ef\u00bf\u00bd"
    )
    return single, sequence
