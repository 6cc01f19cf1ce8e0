"""The codes of languages are those of the Unicode consortium."""

import pytest

from vaswani_jax.core import language_codes


def test_every_code_of_the_unicode_consortium_is_known() -> None:
    core = pytest.importorskip("babel.core", reason="babel is not installed: .[demo]")
    codes = {
        name.partition("_")[0]
        for data in ("language_aliases", "likely_subtags")
        for name in core.get_global(data)
    }
    assert len(codes) > 7000
    unknown = {code for code in codes if not language_codes.is_code(code)}
    assert all(len(code) > 3 for code in unknown)  # the codes of scripts
    assert set(language_codes.CODES_BY_NAME.values()) <= codes | {"zh"}
    assert not any(map(language_codes.is_code, language_codes.CODES_BY_COUNTRY))
