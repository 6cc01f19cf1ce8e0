"""Name languages in English, and rank those that a request may mean."""

from vaswani_jax.core import language_codes, locales

# Stands for the language that a parser translates to.
TREES = "trees"
# Of ISO 15924: scripts that contain a language's usual one, or are forms of it.
EQUIVALENT_SCRIPTS = {
    **{"kore": "hang", "aran": "arab", "latf": "latn", "latg": "latn", "hanb": "hant"},
    **dict.fromkeys(("hrkt", "hira", "kana"), "jpan"),
}
# Names in `CODES_BY_NAME` that are not the usual English ones.
OTHER_NAMES = frozenset(
    """
    castilian dansk deutsch espanol farsi flemish francais italiano kirghiz maldivian
    mandarin moldavian nederlands nihongo norsk oriya panjabi polski portugues pushto
    russkij sinhala suomi svenska turkce uighur zhongwen scottish-gaelic
    western-frisian
    """.split()
)
NAMES_BY_CODE = {
    code: name.replace("-", " ").title()
    for name, code in reversed(language_codes.CODES_BY_NAME.items())
    if name not in OTHER_NAMES
}


def name(locale: str) -> str:
    """Return the English name of a locale's language, with the rest of the locale.

    >>> [name(locale) for locale in ("de", "pt_BR", "zh-Hans", "trees", "tlh")]
    ['German', 'Portuguese (BR)', 'Chinese (Hans)', 'Trees', 'tlh']
    """
    if locale == TREES:
        return "Trees"
    _, _, suffix = locales.web_tag(locale).partition("-")
    language = NAMES_BY_CODE.get(locales.language_code(locale))
    if not language:
        return locales.web_tag(locale)
    return f"{language} ({suffix})" if suffix else language


def rank(locale: str, requested: str) -> int:
    """Return how well a locale fits a request: 3 if the request names it, else less.

    2 is for the same language in the same script, 1 for the same language if a script
    is unknown, and 0 for another language or script.

    >>> [rank("zh_TW", requested) for requested in ("zh-tw", "zh-Hant", "zho", "zh-CN")]
    [3, 2, 1, 0]
    """
    if locales.web_tag(locale).lower() == locales.web_tag(requested).lower():
        return 3
    if TREES in (locale, requested):
        return 0
    if locales.language_code(locale) != locales.language_code(requested):
        return 0
    codes = map(locales.script_code, (locale, requested))
    scripts = {EQUIVALENT_SCRIPTS.get(code, code) for code in codes}
    # Hani stands for Hans and Hant.
    if scripts & {"", "hani"}:
        return 1
    return 2 if len(scripts) == 1 else 0
