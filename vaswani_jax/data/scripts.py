"""Find the scripts of text, by their codes in ISO 15924: Latn, Cyrl, Hani, ..."""

import collections
import functools
import unicodedata
from collections.abc import Set

from vaswani_jax.core import locales

# The code of ISO 15924 for a script that this module does not know.
UNKNOWN = "Zzzz"
# Scripts by the first word of the Unicode names of their letters.
SCRIPTS_BY_NAME = {
    **{"ADLAM": "Adlm", "ARABIC": "Arab", "ARMENIAN": "Armn", "BENGALI": "Beng"},
    **{"BOPOMOFO": "Bopo"},
    **{"CANADIAN": "Cans", "CHEROKEE": "Cher", "CJK": "Hani", "COPTIC": "Copt"},
    **{"CYRILLIC": "Cyrl", "DEVANAGARI": "Deva", "ETHIOPIC": "Ethi"},
    **{"GEORGIAN": "Geor", "GREEK": "Grek", "GUJARATI": "Gujr", "GURMUKHI": "Guru"},
    **{"HANGUL": "Hang", "HEBREW": "Hebr", "HIRAGANA": "Hira", "KANNADA": "Knda"},
    **{"KATAKANA": "Kana", "KHMER": "Khmr", "LAO": "Laoo", "LATIN": "Latn"},
    **{"MALAYALAM": "Mlym", "MEETEI": "Mtei", "MONGOLIAN": "Mong", "MYANMAR": "Mymr"},
    **{"NKO": "Nkoo", "OL": "Olck", "ORIYA": "Orya", "SINHALA": "Sinh"},
    **{"SYRIAC": "Syrc", "TAMIL": "Taml", "TELUGU": "Telu", "THAANA": "Thaa"},
    **{"THAI": "Thai", "TIBETAN": "Tibt", "TIFINAGH": "Tfng", "YI": "Yiii"},
}
# Prefixes of the names of letters, as in "FULLWIDTH LATIN SMALL LETTER A".
_WIDTHS = ("FULLWIDTH ", "HALFWIDTH ")
# Languages that are written in other scripts than Latin, or also in Latin.
_LANGUAGES = {
    "Adlm Latn": "ff",
    "Arab": "ar fa ps sd ug ur ks acm acq aeb ajp apc ars ary arz bal ckb glk hno lah "
    "lrc mzn pbt prs sdh skr",
    "Arab Guru": "pa",
    "Arab Latn": "ku ha",
    "Armn": "hy hyw",
    "Beng": "as bn bpy ctg syl",
    "Beng Mtei": "mni",
    "Cans Latn": "cr iu oj",
    "Cher": "chr",
    "Cyrl": "ab av ba be bg ce cu cv kk ky mk os ru tg tt uk ady alt bua bxr chm inh "
    "kbd koi krc kum kv lbe lez mdf mhr mrj myv rue sah tyv udm xal",
    "Cyrl Latn": "bs sh sr uz crh",
    "Cyrl Mong": "mn",
    "Deva Khmr Latn Mymr Sinh Thai": "pi",
    "Deva": "hi mr ne sa awa bgc bho brx doi dty gom hne kok mag mai new raj",
    "Ethi": "am ti gez tig",
    "Geor": "ka xmf",
    "Grek": "el grc pnt",
    "Gujr": "gu",
    "Hang Hani": "ko",
    "Hani": "zh yue cdo cjy cnp csp czh gan hak hsn ltc lzh wuu",
    "Hani Hira Kana": "ja",
    "Hani Latn": "nan",
    "Hebr": "he yi lad",
    "Khmr": "km",
    "Knda": "kn tcy",
    "Laoo": "lo",
    "Mlym": "ml",
    "Mymr": "my blk ksw mnw shn",
    "Nkoo": "nqo",
    "Olck": "sat",
    "Orya": "or",
    "Sinh": "si",
    "Syrc": "syr arc",
    "Taml": "ta",
    "Telu": "te",
    "Tfng": "zgh tzm",
    "Thaa": "dv",
    "Thai": "th tts sou nod",
    "Tibt": "bo dz lbj",
    "Yiii": "ii",
}
_SCRIPTS_BY_LANGUAGE = {
    language: frozenset(scripts.split())
    for scripts, languages in _LANGUAGES.items()
    for language in languages.split()
}
# Codes of locales that stand for several scripts, or for variants of one.
_SCRIPTS_BY_CODE = {
    "Aran": "Arab",
    "Cyrs": "Cyrl",
    "Hanb": "Bopo Hani",
    "Hans": "Hani",
    "Hant": "Hani",
    "Hrkt": "Hira Kana",
    "Jamo": "Hang",
    "Jpan": "Hani Hira Kana",
    "Kore": "Hang Hani",
    "Latf": "Latn",
    "Latg": "Latn",
    "Syre": "Syrc",
    "Syrj": "Syrc",
    "Syrn": "Syrc",
}
_KNOWN_SCRIPTS = frozenset(SCRIPTS_BY_NAME.values())


@functools.lru_cache(maxsize=1000)
def scripts_of_locale(locale: str) -> frozenset[str]:
    """Return the scripts that a locale's language is written in.

    >>> sorted(scripts_of_locale("ja")), sorted(scripts_of_locale("sr_Latn"))
    (['Hani', 'Hira', 'Kana'], ['Latn'])

    Args:
        locale: The locale. Without a script of its own, its language's are meant:
            Latin letters, if it has no others.

    Returns:
        Their codes; none if the locale names a script that this module does not know.
    """
    for part in locale.replace("-", "_").split("_")[1:]:
        if len(part) == 4 and part.isalpha():
            code = part.title()
            scripts = frozenset(_SCRIPTS_BY_CODE.get(code, code).split())
            return scripts & _KNOWN_SCRIPTS
    language = locales.language_code(locale)
    return _SCRIPTS_BY_LANGUAGE.get(language, frozenset({"Latn"}))


@functools.lru_cache(maxsize=100_000)
def script_of_letter(character: str) -> str:
    """Return the script of a letter; "" for digits, signs, marks and spaces.

    >>> [script_of_letter(letter) for letter in "aяé漢ア3!"]
    ['Latn', 'Cyrl', 'Latn', 'Hani', 'Kana', '', '']
    """
    # Modifier letters and ordinals (Lm, ª) stand in text of all scripts.
    if unicodedata.category(character) not in ("Ll", "Lo", "Lt", "Lu"):
        return ""
    name = unicodedata.name(character, "")
    for width in _WIDTHS:
        name = name.removeprefix(width)
    first_word = name.split(" ")[0]
    if first_word in ("FEMININE", "MASCULINE", "MICRO"):
        return ""
    return SCRIPTS_BY_NAME.get(first_word, UNKNOWN)


def letters_by_script(text: str) -> collections.Counter[str]:
    """Return the number of letters of each script in a text.

    >>> letters_by_script("Wi-Fi в метро")["Cyrl"]
    6
    """
    counts = collections.Counter(map(script_of_letter, text))
    del counts[""]
    return counts


def script_of(text: str) -> str:
    """Return the script of most letters of a text; "" if it has no letters."""
    counts = letters_by_script(text)
    return max(counts, key=lambda script: (counts[script], script), default="")


def share_in_scripts(text: str, scripts: Set[str]) -> float:
    """Return the share of a text's letters that belong to some scripts.

    It is 1 for a text without letters, and if there are no scripts to judge by.

    >>> share_in_scripts("Wi-Fi в метро", {"Cyrl"})
    0.6
    """
    if not scripts or (text.isascii() and "Latn" in scripts):
        return 1.0
    counts = letters_by_script(text)
    num_letters = counts.total()
    if not num_letters:
        return 1.0
    return sum(counts[script] for script in scripts) / num_letters
