"""The target languages of a run, and the tag by which a source line names its own.

A run with several target locales translates "<2de> Hello" to German and "<2fr> Hello"
to French (Johnson et al., 2017, "Google's Multilingual Neural Machine Translation
System"). A run with one target locale has no tags.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from vaswani_jax.core import corpora, language_codes, locales
from vaswani_jax.core.config import DataConfig

# The language code of a line for a MarianMT model: >>fra<<, >>zho_Hans<<.
BLANKS = r"[\s\ufeff\u200b-\u200f\u2060-\u2069]"
CODE = re.compile(rf"{BLANKS}*>>(([a-z]{{2,3}})(?:_\w+)?)<<\s*")
WORD = re.compile(r"\s*(\S+)\s*")
INVISIBLE = re.compile(rf"^{BLANKS}+")


def target_locales(data: DataConfig) -> tuple[str, ...]:
    """Return the locales that `data.target_locale` lists: one, or several."""
    return tuple(data.target_locale.split(","))


def tag(locale: str) -> str:
    """Return what a source line begins with that is translated to a locale.

    >>> tag("pt_BR")
    '<2pt_BR>'
    """
    return f"<2{locale}>"


def locales_by_tag(data: DataConfig) -> Mapping[str, str]:
    """Return the target locale of each tag; empty if the run has one target locale."""
    return _map_tags(data.target_locale)


# Cached, as every line of a text needs it, and there may be many locales.
@functools.lru_cache(maxsize=8)
def _map_tags(target_locale: str) -> Mapping[str, str]:
    names = target_locale.split(",")
    by_tag = {tag(locale): locale for locale in names} if len(names) > 1 else {}
    return MappingProxyType(by_tag)


def find_tag(line: str, data: DataConfig) -> str | None:
    """Return the tag that a source line begins with, or None."""
    # Invisible marks before a tag are read as nothing.
    text = INVISIBLE.sub("", line)
    tag = text[: text.find(">") + 1]
    return tag if tag in locales_by_tag(data) else None


def remove_tag(line: str, data: DataConfig) -> str:
    """Return a source line without the tags and the code that it begins with, if any.

    The tag or code of its language stands before the tags of corpora.
    """
    return split_corpus_tags(_split_language(line, data)[1], data)[1]


def remove_corpus_tags(line: str, data: DataConfig) -> str:
    """Return a source line without the tags of corpora that it begins with, if any.

    The tag or code of its language stays.
    """
    language, text = _split_language(line, data)
    return language + split_corpus_tags(text, data)[1]


def remove_language_tag(line: str, data: DataConfig) -> str:
    """Return a source line without the tag of its language that it begins with, if any.

    Codes and the tags of corpora stay.
    """
    return line if find_tag(line, data) is None else _split_language(line, data)[1]


def _split_language(line: str, data: DataConfig) -> tuple[str, str]:
    """Return the tag or code of its language that a line begins with, and the rest."""
    if (tag := find_tag(line, data)) is None:
        return split_code(line)
    text = line.partition(tag)[2].lstrip()
    return line[: len(line) - len(text)], text


def is_empty(line: str, data: DataConfig) -> bool:
    """Return whether a source line has no text besides its tag or language code."""
    text = line.replace("\0", " ")
    return not (remove_tag(text, data) if text.strip() else text).strip()


def split_code(line: str) -> tuple[str, str]:
    """Return the language code that a line begins with, or "", and the rest.

    >>> split_code(">>fra<< Hello"), split_code(">>Hello<<, he said.")
    (('>>fra<< ', 'Hello'), ('', '>>Hello<<, he said.'))
    """
    code = _match_code(line)
    return (code[0], line[code.end() :]) if code else ("", line)


def split_corpus_tags(line: str, data: DataConfig) -> tuple[str, str]:
    """Return the tags of corpora that a line begins with, or "", and the rest.

    A tag is a word of its own: if it is "news", "newspapers" does not begin with it.
    """
    tags = {corpus.tag for corpus in corpora.parse_corpora(data.corpora) if corpus.tag}
    text = line
    while (word := WORD.match(text)) and word[1] in tags:
        text = text[word.end() :]
    return line[: len(line) - len(text)], text


def _match_code(line: str) -> re.Match[str] | None:
    code = CODE.match(line)
    # A quotation such as >>Nein<< has the same form.
    is_language = code and language_codes.is_code(locales.language_code(code[2]))
    return code if is_language else None


def add_tag(line: str, tag: str, data: DataConfig) -> str:
    """Return a source line with the tag of its corpus, after that of its language."""
    language = find_tag(line, data)
    if language is None:
        code, text = split_code(line)
        code = INVISIBLE.sub("", code).rstrip()
        return f"{code} {tag} {text}" if code else f"{tag} {line}"
    return f"{language} {tag} {INVISIBLE.sub('', line)[len(language) :].lstrip()}"


def piece_separator(line: str, data: DataConfig) -> str:
    """Return what stands between the translations of a long line's pieces.

    It is a space, or nothing in a language that puts none between sentences. The
    target language is that of the line's tag or code.
    """
    return " " if has_spaces(line_locale(line, data), data) else ""


def has_spaces(locale: str, data: DataConfig) -> bool:
    """Return whether spaces separate words: in tokenized text, or by the locale."""
    return data.text_form == "tokenized" or locales.has_spaces(locale)


def line_locale(line: str, data: DataConfig) -> str:
    """Return the target locale of a source line: that of its tag or code, if any.

    A line without either has the first target locale. If a run has several, only empty
    lines lack both.
    """
    if tag := find_tag(line, data):
        return locales_by_tag(data)[tag]
    code = _match_code(line)
    return code[1] if code else target_locales(data)[0]


def references_by_locale(
    source: Sequence[str], references: Sequence[str], data: DataConfig
) -> dict[str, list[str]]:
    """Return the references of each target locale that has lines."""
    tags = locales_by_tag(data)
    if not tags:
        return {data.target_locale: list(references)}
    by_locale: dict[str, list[str]] = {locale: [] for locale in tags.values()}
    for line, reference in zip(source, references, strict=True):
        if tag := find_tag(line, data):
            by_locale[tags[tag]].append(reference)
    return {locale: lines for locale, lines in by_locale.items() if lines}


def bleu_tokenizers(
    source: Sequence[str], references: Sequence[str], data: DataConfig
) -> str:
    """Return sacreBLEU's tokeniser of each target locale, separated by commas."""
    by_locale = references_by_locale(source, references, data)
    return ",".join(
        locales.bleu_tokenizer(locale, lines) for locale, lines in by_locale.items()
    )


def recorded_tokenizers(data: DataConfig) -> str:
    """Return `bleu_tokenizers` of runs that recorded none."""
    return ",".join(map(locales.recorded_tokenizer, target_locales(data)))


def check_tags(lines: Sequence[str], data: DataConfig, *, first_line: int) -> None:
    """Refuse source lines that name no target language where there are several.

    The model has learned no translation of a line without a tag. An empty line needs
    none.

    Args:
        lines: Source lines.
        data: The settings of the run.
        first_line: The number of the first line, for the message.

    Raises:
        ValueError: Has the number of the first line without a tag.
    """
    tags = locales_by_tag(data)
    for number, line in enumerate(lines if tags else (), start=first_line):
        if line.strip() and find_tag(line, data) is None:
            *first_tags, last_tag = tags
            raise ValueError(
                f"line {number} must begin with a tag that names the target language, "
                f"{', '.join(first_tags)} or {last_tag}, got {line[:40]!r}"
            )
