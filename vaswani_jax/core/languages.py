"""Languages by their shortest codes, which the scores of section 6.1 go by."""

# ISO 639-3, and 639-2 where it has another code, to 639-1: the languages that Moses
# has rules for, and those that are written without spaces.
SHORT = {
    **{"asm": "as", "ben": "bn", "bod": "bo", "tib": "bo", "cat": "ca", "ces": "cs"},
    **{"cze": "cs", "deu": "de", "ger": "de", "dzo": "dz", "ell": "el", "gre": "el"},
    **{"eng": "en", "est": "et", "ekk": "et", "fin": "fi", "fra": "fr", "fre": "fr"},
    **{"gle": "ga", "guj": "gu", "hin": "hi", "hun": "hu", "isl": "is", "ice": "is"},
    **{"ita": "it", "jpn": "ja", "kan": "kn", "khm": "km", "kor": "ko", "lao": "lo"},
    **{"lav": "lv", "lvs": "lv", "lit": "lt", "mal": "ml", "mar": "mr", "mya": "my"},
    **{"bur": "my", "nld": "nl", "dut": "nl", "ori": "or", "ory": "or", "pan": "pa"},
    **{"pol": "pl", "por": "pt", "ron": "ro", "rum": "ro", "rus": "ru", "slk": "sk"},
    **{"slo": "sk", "slv": "sl", "som": "so", "spa": "es", "swe": "sv", "tam": "ta"},
    **{"tel": "te", "tha": "th", "zho": "zh", "chi": "zh", "cmn": "zh"},
}


def of(locale: str) -> str:
    """The language of a locale.

    >>> of("pt_BR"), of("zh-Hans-CN"), of("deu"), of("yue")
    ('pt', 'zh', 'de', 'yue')
    """
    code = locale.replace("-", "_").partition("_")[0].lower()
    return SHORT.get(code, code)
