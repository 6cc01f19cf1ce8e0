"""The JSON messages of /v1: requests and answers."""

import json
import re
from typing import Annotated, Any

import pydantic

Finite = Annotated[float, pydantic.Field(allow_inf_nan=False)]
# A list of many wrong values would have an error for each.
Strings = Annotated[list[str], pydantic.Field(fail_fast=True)]
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
TEXT = "A text, or a list of texts. A text may have many sentences and lines."


class Message(pydantic.BaseModel):
    """A JSON object that has no other fields, and values of these types alone."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)


class Choice(Message):
    """The choice of a model; by default the first that translates these languages.

    Attributes:
        model: The name of a model.
        source: The language of the texts, as a locale.
        target: The language of the translations.
    """

    model: str | None = pydantic.Field(default=None, description="The name of a model.")
    source: str | None = pydantic.Field(
        default=None, description="The language of the texts."
    )
    target: str | None = pydantic.Field(
        default=None, description="The language of the translations."
    )


class TranslateRequest(Choice):
    """A request to translate."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "examples": [
                {"text": "3 hours ago"},
                {"text": ["3 hours ago", "next Monday"], "source": "en", "n_best": 2},
            ]
        }
    )
    text: str | Strings = pydantic.Field(description=TEXT)
    n_best: int = pydantic.Field(
        default=1,
        ge=1,
        description="How many translations of each text, at most the beam.",
    )
    beam_size: int | None = pydantic.Field(
        default=None, ge=1, description="Hypotheses that the search keeps, W."
    )
    length_penalty: Finite | None = pydantic.Field(
        default=None, ge=0, description="The exponent of the length penalty, alpha."
    )
    prefix: str | Strings | None = pydantic.Field(
        default=None, description="What the translation of each text begins with."
    )
    glossary: dict[str, str] | None = pydantic.Field(
        default=None,
        description="Translations of terms: {term: translation}. `missing_phrases` "
        "names those that the translation of a sentence lacks.",
    )
    alignment: bool = pydantic.Field(
        default=False, description="Align words: offsets of characters of both texts."
    )
    stream: bool = pydantic.Field(
        default=False, description="Answer with an event for each sentence."
    )


class ScoreRequest(Choice):
    """A request to score given translations, each of one line."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "examples": [{"text": "3 hours ago", "translation": "vor 3 Stunden"}]
        }
    )
    text: str | Strings = pydantic.Field(description="A line, or a list of lines.")
    translation: str | Strings = pydantic.Field(description="The translation of each.")


class AttentionRequest(Choice):
    """A request for all attention weights of one sentence."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={"examples": [{"text": "3 hours ago"}]}
    )
    text: str = pydantic.Field(description="A sentence.")
    translation: str | None = pydantic.Field(
        default=None, description="Its translation; by default the best that is found."
    )


class Translation(Message):
    """A translation of a text."""

    text: str
    score: float = pydantic.Field(description="log P(Y|X) / lp(Y) in nats.")


class Sentence(Message):
    """The places, in characters, of a sentence and its best translation."""

    source_begin: int
    source_end: int
    target_begin: int
    target_end: int
    score: float
    alignment: list[tuple[int, int, int, int]] | None = pydantic.Field(
        default=None,
        description="The places of aligned words, a source word and a target word: "
        "source_begin, source_end, target_begin, target_end. Null for a sentence that "
        "was translated in pieces, and for a tree.",
    )
    missing_phrases: list[str] | None = pydantic.Field(
        default=None,
        description="Translations of the glossary that the best translation of the "
        "sentence lacks. Absent without a glossary.",
    )
    cut: bool | None = pydantic.Field(
        default=None,
        description="True if the best translation is cut at the model's limit of "
        "tokens; else absent.",
    )
    inherited_tags: str | None = pydantic.Field(
        default=None,
        description="The language code and the tags of corpora of earlier sentences "
        "that hold for this one: what the model reads before it. Absent if there are "
        "none.",
    )


class Result(Message):
    """The translations of a text, the best first, and the sentences of the best."""

    translations: list[Translation]
    sentences: list[Sentence]


class Answer(Message):
    """The model that answered, and its languages."""

    model: str
    source: str
    target: str


class TranslateAnswer(Answer):
    """Translations of texts, in their order."""

    results: list[Result]


class SentenceEvent(Sentence):
    """A sentence of a streamed answer, with both texts."""

    text_index: int
    source: str
    target: str


class Token(Message):
    """A subword of a translation."""

    text: str
    log_prob: float = pydantic.Field(description="log P(y_t | y_<t, X) in nats.")


class Score(Message):
    """The probability of a translation."""

    score: float = pydantic.Field(description="log P(Y|X) in nats.")
    tokens: list[Token]


class ScoreAnswer(Answer):
    """Scores of translations, in their order."""

    results: list[Score]


Weights = list[list[list[list[float]]]]


class AttentionAnswer(Answer):
    """The attention of a sentence: layers, heads, queries, keys."""

    text: str
    translation: str
    source_tokens: list[str]
    target_in: list[str]
    target_out: list[str]
    log_probs: list[float]
    encoder: Weights
    decoder: Weights
    memory: Weights


class DirectionEntry(Message):
    """Two languages between which a model translates."""

    source: str
    target: str


class ModelEntry(Message):
    """A model that requests may name."""

    name: str
    directions: list[DirectionEntry]
    checkpoint: str
    parameters: int
    beam_sizes: list[int] = pydantic.Field(description="The default is the first.")
    length_penalty: float = pydantic.Field(description="The default.")


class LimitsEntry(Message):
    """The limits of requests."""

    texts: int
    characters: int
    n_best: int
    length_penalties: tuple[float, float]
    seconds: float


class ModelsAnswer(Message):
    """All models, and the limits of requests."""

    models: list[ModelEntry]
    limits: LimitsEntry


class LanguageEntry(Message):
    """A language of texts, and those that they can be translated to."""

    code: str
    name: str
    targets: list[str]


class LanguagesAnswer(Message):
    """All languages of texts."""

    languages: list[LanguageEntry]


class HealthAnswer(Message):
    """The state of the server: status 200 if it is ready, else 503."""

    status: str = pydantic.Field(description="starting, ready or draining.")
    models: list[str]


class ErrorReason(Message):
    """The reason why a request was refused, and the field that is wrong."""

    message: str
    field: str | None


class ErrorAnswer(Message):
    """The answer to a request that was refused."""

    error: ErrorReason


def read_json(body: bytes) -> Any:
    """Return the value of a JSON text that has one meaning.

    Raises:
        ValueError: It is not JSON in UTF-8 or is nested too deeply. Or it has NaN, an
            infinity, a number that is too long, half of a surrogate pair, or a key
            twice in an object.
    """
    try:
        value = json.loads(
            body.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
        if SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a text has half of a surrogate pair") from None
    return value


def to_json(message: pydantic.BaseModel) -> bytes:
    """Return a message as JSON, without the fields that were not set."""
    return message.model_dump_json(exclude_unset=True).encode()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("an object has a key twice")
    return values


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")
