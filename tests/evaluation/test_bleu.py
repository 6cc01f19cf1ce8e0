"""BLEU and chrF against formulas, sacreBLEU and real Perl."""

import hashlib
import math

import pytest
import sacrebleu
import sacremoses

from tests import settings as settings_
from tests.evaluation import papineni
from vaswani_jax.core import locales
from vaswani_jax.evaluation import bleu

ENGLISH = {
    "text_form": "detokenized",
    "target_language": "en",
    "lowercase": False,
}
GERMAN = ENGLISH | {"target_language": "de"}
TOKENIZED = ENGLISH | {"text_form": "tokenized"}
GERMAN_REFERENCES = [
    'Der Nord-Süd-Weg, sagte sie, ist "nicht" gesperrt.',
    "Über die A-B-Strecke weiß man z. B. nichts [noch nicht].",
    "Es kostet 1,5 Mio. Euro & das ist viel.",
]
GERMAN_OUTPUTS = [
    'Der Nord-Süd-Weg, sagte er, ist "nicht" gesperrt.',
    "Über die A-B-Linie weiß man z. B. nichts [noch nicht].",
    "Es kostet 1,5 Mio. Euro, und das ist sehr viel.",
]


def values(scores):
    return {score.name: score.value for score in scores}


def signatures(scores):
    return {score.name: score.signature for score in scores}


def test_moses_tokenize_escapes_as_tokenizer_perl_does():
    lines = [GERMAN_REFERENCES[0], "[a|b] <c> & d's", "", " \t"]
    assert bleu.tokenize(lines, "de") == [
        "Der Nord-Süd-Weg , sagte sie , ist &quot; nicht &quot; gesperrt .",
        "&#91; a &#124; b &#93; &lt; c &gt; &amp; d &apos; s",
        "",
        "",
    ]


def test_moses_tokenize_follows_the_language():
    assert bleu.tokenize(["l'eau"], "fr") == ["l&apos; eau"]
    assert bleu.tokenize(["it's"], "en") == ["it &apos;s"]
    # Of the same line, too.
    assert bleu.tokenize(["it's l'eau"], "en") == ["it &apos;s l &apos;eau"]
    assert bleu.tokenize(["it's l'eau"], "fr") == ["it&apos; s l&apos; eau"]


def test_a_line_is_tokenised_once_for_all_scores(monkeypatch):
    lines = []
    tokenize = sacremoses.MosesTokenizer.tokenize

    def record(self, text, **options):
        lines.append(text)
        return tokenize(self, text, **options)

    monkeypatch.setattr(sacremoses.MosesTokenizer, "tokenize", record)
    outputs = ["Sie zählt „eins“ einmal.", "Sie zählt zweimal."]
    bleu.corpus_scores(outputs, outputs[::-1], **GERMAN)
    # The score with the punctuation of ASCII sees another first line.
    assert sorted(lines) == sorted([*outputs, 'Sie zählt "eins" einmal.'])


@pytest.mark.parametrize("settings", [ENGLISH, GERMAN, TOKENIZED])
@pytest.mark.parametrize("lowercase", [False, True])
def test_equal_lines_score_100(settings, lowercase):
    scores = bleu.corpus_scores(
        GERMAN_REFERENCES, GERMAN_REFERENCES, **settings | {"lowercase": lowercase}
    )
    assert [score.value for score in scores] == pytest.approx([100.0] * len(scores))


def test_corpus_scores_of_plain_text_names_every_score():
    scores = bleu.corpus_scores(GERMAN_OUTPUTS, GERMAN_REFERENCES, **GERMAN)
    assert signatures(scores) == {
        "sacrebleu": "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"
        f"|version:{sacrebleu.__version__}",
        "chrf": "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no"
        f"|version:{sacrebleu.__version__}",
        "paper_bleu": "multi-bleu|tok:moses-de-escaped|compound:none|case:mixed"
        f"|smooth:none|sacremoses:{sacremoses.__version__}",
        "paper_bleu_split": "multi-bleu|tok:moses-de-escaped|compound:ATsplit"
        f"|case:mixed|smooth:none|sacremoses:{sacremoses.__version__}",
        "paper_bleu_split_ascii": "multi-bleu|tok:moses-de-escaped|compound:ATsplit"
        f"|case:mixed|smooth:none|sacremoses:{sacremoses.__version__}|punct:ascii",
    }


def test_corpus_scores_of_lower_cased_plain_text_says_so():
    settings = ENGLISH | {"lowercase": True}
    scores = bleu.corpus_scores(GERMAN_OUTPUTS, GERMAN_REFERENCES, **settings)
    assert list(values(scores)) == ["sacrebleu_lc", "chrf_lc", "paper_bleu_lc"]
    assert all("|case:lc|" in score.signature for score in scores)
    assert "|compound:none|" in signatures(scores)["paper_bleu_lc"]


@pytest.mark.parametrize(
    ("changes", "name", "signature"),
    [
        ({}, "tokenized_bleu", "compound:none|case:mixed"),
        ({"lowercase": True}, "tokenized_bleu_lc", "compound:none|case:lc"),
        (
            {"target_language": "de"},
            "tokenized_bleu_split",
            "compound:ATsplit|case:mixed",
        ),
    ],
)
def test_corpus_scores_of_tokenized_text_gives_no_other_score(changes, name, signature):
    score = bleu.corpus_scores(["a b c d"], ["a b c d"], **TOKENIZED | changes)[-1]
    assert score.name == name
    assert score.signature == f"multi-bleu|tok:as-given|{signature}|smooth:none"


def test_corpus_scores_leaves_tokenized_text_alone():
    outputs, references = ["a, b, c, d"], ["a , b , c , d"]
    assert values(bleu.corpus_scores(outputs, references, **TOKENIZED)) == {
        "tokenized_bleu": 0.0
    }
    assert (
        values(bleu.corpus_scores(outputs, references, **ENGLISH))["paper_bleu"]
        == 100.0
    )


def test_tokenized_text_in_which_a_line_is_one_token_has_no_bleu():
    lines = ["\u8fd9\u53ea\u8def\u5f88\u7eff\u53f7\u7801\u662f" * 2] * 2
    scores = bleu.corpus_scores(
        lines, lines, text_form="tokenized", target_language="zh", lowercase=False
    )
    assert [score.name for score in scores] == ["chrf"]


def test_paper_bleu_is_the_formula_over_tokens_written_by_hand():
    outputs = [
        "Der Nord ##AT##-##AT## Süd ##AT##-##AT## Weg , sagte er , ist &quot; nicht "
        "&quot; gesperrt .",
        "Über die A ##AT##-##AT## B-Linie weiß man z. B. nichts &#91; noch nicht "
        "&#93; .",
        "Es kostet 1,5 Mio. Euro , und das ist sehr viel .",
    ]
    references = [
        "Der Nord ##AT##-##AT## Süd ##AT##-##AT## Weg , sagte sie , ist &quot; nicht "
        "&quot; gesperrt .",
        "Über die A ##AT##-##AT## B-Strecke weiß man z. B. nichts &#91; noch nicht "
        "&#93; .",
        "Es kostet 1,5 Mio. Euro &amp; das ist viel .",
    ]
    scores = values(bleu.corpus_scores(GERMAN_OUTPUTS, GERMAN_REFERENCES, **GERMAN))
    expected = papineni.bleu_from_the_formula(outputs, references)
    assert 0 < expected < 100
    assert scores["paper_bleu_split"] == pytest.approx(expected, rel=1e-12)


def test_quotes_are_ascii_s_in_one_score_alone():
    curly = ["„Der Nord-Süd-Weg“, sagte sie, »ist« … ‚so‘ – it’s ”zu”.", "a b c d"]
    straight = [
        '"Der Nord-Süd-Weg", sagte sie, "ist" ... \'so\' – it\'s "zu".',
        "a b c d",
    ]
    assert bleu.ascii_punctuation(curly) == straight
    assert bleu.ascii_punctuation(straight) == straight
    for pair in ((curly, straight), (straight, curly)):
        scores = values(bleu.corpus_scores(*pair, **GERMAN))
        assert scores.pop("paper_bleu_split_ascii") == 100
        assert all(value < 80 for value in scores.values()), scores
    plain = values(bleu.corpus_scores(straight, straight[::-1], **GERMAN))
    assert plain["paper_bleu_split_ascii"] == plain["paper_bleu_split"]


def test_sacrebleu_and_chrf_are_those_of_the_library():
    scores = values(bleu.corpus_scores(GERMAN_OUTPUTS, GERMAN_REFERENCES, **GERMAN))
    expected = sacrebleu.corpus_bleu(GERMAN_OUTPUTS, [GERMAN_REFERENCES]).score
    assert scores["sacrebleu"] == expected
    expected = sacrebleu.corpus_chrf(GERMAN_OUTPUTS, [GERMAN_REFERENCES]).score
    assert scores["chrf"] == expected


def test_splitting_compounds_changes_the_papers_bleu():
    scores = values(bleu.corpus_scores(GERMAN_OUTPUTS, GERMAN_REFERENCES, **GERMAN))
    assert scores["paper_bleu_split"] > scores["paper_bleu"]


@pytest.mark.parametrize("settings", [ENGLISH, GERMAN, TOKENIZED])
def test_lowercase_ignores_the_case_of_umlauts_too(settings):
    upper = [GERMAN_REFERENCES[0].upper(), *GERMAN_REFERENCES[1:]]
    mixed = bleu.corpus_scores(upper, GERMAN_REFERENCES, **settings)
    folded = bleu.corpus_scores(
        upper, GERMAN_REFERENCES, **settings | {"lowercase": True}
    )
    assert all(score.value < 100 for score in mixed)
    assert [score.value for score in folded] == pytest.approx([100.0] * len(folded))


@pytest.mark.parametrize("settings", [ENGLISH, TOKENIZED])
def test_empty_output_line_counts(settings):
    references = ["one two three four", "five six seven eight"]
    complete = bleu.corpus_scores(references, references, **settings)
    for missing in (0, 1):
        outputs = ["" if i == missing else line for i, line in enumerate(references)]
        scores = bleu.corpus_scores(outputs, references, **settings)
        for score, full in zip(scores, complete, strict=True):
            assert 0 < score.value < full.value
            if "bleu" in score.name:
                # All that is there is right, but half of it is missing.
                assert score.value == pytest.approx(100 * math.exp(1 - 8 / 4))


@pytest.mark.parametrize("space", ["\t", "\r", "\u2028", "\u00a0", "\x0b", "\x85"])
def test_odd_whitespace_in_plain_text_is_a_space_and_not_a_line_end(space):
    odd = [line.replace(" ", space) for line in GERMAN_OUTPUTS]
    expected = bleu.corpus_scores(GERMAN_OUTPUTS, GERMAN_REFERENCES, **GERMAN)
    assert bleu.corpus_scores(odd, GERMAN_REFERENCES, **GERMAN) == expected


@pytest.mark.parametrize("space", ["\t", "\r", "\u2028", "\u00a0", "\x0b", "\x85"])
def test_odd_whitespace_in_tokenized_text_does_not_shift_later_lines(space):
    outputs = [f"x{space}y", "a b c d e f"]
    references = ["z", "a b c d e f"]
    (score,) = bleu.corpus_scores(outputs, references, **TOKENIZED)
    tokens = 1 if space in "\u2028\u00a0\x85" else 2
    expected = 100 * (6 / (6 + tokens)) ** 0.25
    expected *= (5 / (5 + tokens - 1)) ** 0.25
    assert score.value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("settings", [ENGLISH, GERMAN, TOKENIZED])
def test_unequal_line_counts_are_refused(settings):
    with pytest.raises(ValueError, match="got 3 outputs and 2 references"):
        bleu.corpus_scores(["a", "b", "c"], ["a", "b"], **settings)
    with pytest.raises(ValueError, match="got 0 outputs and 1 references"):
        bleu.corpus_scores([], ["a"], **settings)


@pytest.mark.parametrize("settings", [ENGLISH, GERMAN, TOKENIZED])
def test_no_lines_are_refused(settings):
    with pytest.raises(ValueError, match="at least one line, got 0 outputs"):
        bleu.corpus_scores([], [], **settings)


def test_the_checksum_of_lines_is_that_of_the_file(tmp_path):
    lines = ["Über\u2028uns", "", "tab\there\r"]
    path = tmp_path / "references.de"
    path.write_bytes("Über\u2028uns\n\ntab\there\r\n".encode())
    expected = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert bleu.lines_checksum(lines) == expected
    assert bleu.lines_checksum(lines[::-1]) != expected


def test_format_scores_prints_value_signature_and_checksum():
    scores = [bleu.Score("chrf", 100.0, "s:1"), bleu.Score("paper_bleu", 27.256, "t")]
    assert bleu.format_scores(scores, ["a", "b"]).split("\n") == [
        "references: 2 lines, sha256 911169ddaaf146af",
        "chrf        100.00  s:1",
        "paper_bleu   27.26  t",
    ]


@pytest.mark.parametrize(
    ("language", "tokenizer"),
    [
        # Text tells more than a wrong code.
        ("de", "char"),
        ("zh", "zh"),
        ("yue", "zh"),
        *((code, "char") for code in "ja th km lo my bo dz".split()),
    ],
)
def test_languages_without_spaces_are_scored_by_character(language, tokenizer):
    # One of eight characters differs; 13a would see one wrong word.
    scores = bleu.corpus_scores(
        ["東京都は大きいです"],
        ["東京都は小きいです"],
        text_form="detokenized",
        target_language=language,
        lowercase=False,
    )
    assert f"tok:{tokenizer}" in scores[0].signature
    assert scores[0].value > 30
    # Moses finds no words here: its BLEU would be 0 of perfect outputs, too.
    assert list(values(scores)) == ["sacrebleu", "chrf"]


def test_the_words_of_japanese_are_mecabs(monkeypatch):
    """Scored by its words, a line with another last word of four keeps three."""
    for name in ("MeCab", "ipadic"):
        pytest.importorskip(name, reason=f"{name} is not installed: .[ja]")
    monkeypatch.undo()  # See it, as a user does who has installed it.
    data = settings_.small_settings(**{"data.target_locale": "ja_JP"}).data
    outputs, references = ["私は学生です。日本語を話す"], ["私は学生です。日本語を読む"]
    score, chrf, *others = bleu.score_outputs(outputs, references, data=data)
    assert not others and chrf.name == "chrf"
    assert "|tok:ja-mecab-" in score.signature
    words = "私 は 学生 です 。 日本語 を".split()
    expected = sacrebleu.BLEU(tokenize="none", force=True).corpus_score(
        [" ".join([*words, "話す"])], [[" ".join([*words, "読む"])]]
    )
    assert score.value == pytest.approx(expected.score)


@pytest.mark.parametrize(
    ("overrides", "references", "message"),
    [
        ({"target_locale": "de"}, ["Guten Tag"], ""),
        ({"target_locale": "zh"}, ["你好"], ""),
        (
            {"target_locale": "en"},
            ["你好", "你好吗", "ok"],
            "2 of 3 references have no spaces, but config.data.target_locale=en is a "
            "language with spaces (tok:zh): BLEU counts characters",
        ),
        (
            {"target_locale": "de"},
            ["Guten Tag", "Wort", "สวัสดี"],
            "1 of 3 references have no spaces, but config.data.target_locale=de is a "
            "language with spaces (tok:13a): BLEU takes each line for one word",
        ),
        (
            {"target_locale": "zh", "text_form": "tokenized"},
            ["我今天去北京了，明天回上海，后天再来"],
            "config.data.text_form=tokenized takes what is between spaces for words",
        ),
        ({"target_locale": "zh", "text_form": "tokenized"}, ["我 今天 去 北京"], ""),
        (
            {"target_locale": "de"},
            ["Das ist gut .", "Ja ."],
            "2 of 2 references end in ' .', as tokenised text does",
        ),
        (
            {"target_locale": "ja"},
            ["こんにちは"],
            "note: BLEU of config.data.target_locale=ja has tok:char; other "
            "publications have tok:ja-mecab, which `pip install 'sacrebleu[ja]'` gives",
        ),
        (
            {"target_locale": "kor"},
            ["안녕하세요 여러분"],
            "has tok:13a; other publications have tok:ko-mecab",
        ),
        ({"target_locale": "ja_Latn"}, ["konnichi wa"], ""),
    ],
)
def test_a_user_reads_what_bleu_counts(caplog, overrides, references, message):
    caplog.set_level("INFO", "vaswani_jax")
    data = settings_.small_settings(
        **{f"data.{key}": value for key, value in overrides.items()}
    ).data
    bleu.explain_tokens(references, data=data)
    assert len(caplog.messages) == bool(message)
    assert message in "".join(caplog.messages)


def test_long_codes_are_those_of_the_short_ones():
    """By the Unicode consortium's list."""
    core = pytest.importorskip("babel.core", reason="babel is not installed: .[demo]")
    aliases = core.get_global("language_aliases")
    codes = {code: aliases[code] for code in locales.LANGUAGE_CODES}
    assert codes == locales.LANGUAGE_CODES


@pytest.mark.parametrize(
    ("locale", "language"),
    [("jpn", "ja"), ("cmn-Hans", "zh"), ("DEU_AT", "de"), ("fil", "fil"), ("pt", "pt")],
)
def test_a_language_has_one_code(locale, language):
    assert locales.language_code(locale) == language


@pytest.mark.parametrize(
    "locale", ["zh", "zh_CN", "zh-CN", "zh-Hans-CN", "zho", "cmn_CN", "yue"]
)
def test_either_form_of_a_locale_is_scored_as_its_language(locale):
    data = settings_.small_settings(**{"data.target_locale": locale}).data
    score = bleu.score_outputs(["我今天去北京了"], ["我今天去上海了"], data=data)[0]
    assert "|tok:zh|" in score.signature and score.value > 10


@pytest.mark.parametrize("locale", ["de_AT", "de-AT", "DE", "deu", "ger_AT"])
def test_compounds_of_german_of_any_country_are_split(locale):
    data = settings_.small_settings(
        **{"data.text_form": "tokenized", "data.target_locale": locale}
    ).data
    output, reference = "wir gehen heute den Nord-Weg", "wir gehen heute den Ost-Weg"
    _, score = bleu.score_outputs([output], [reference], data=data)
    metric = sacrebleu.BLEU(tokenize="none", smooth_method="none", force=True)
    unsplit, split = (
        metric.corpus_score(
            [output.replace("-", hyphen)], [[reference.replace("-", hyphen)]]
        ).score
        for hyphen in ("-", " ##AT##-##AT## ")
    )
    assert score.value == pytest.approx(split, rel=1e-9)
    assert abs(unsplit - split) > 1
