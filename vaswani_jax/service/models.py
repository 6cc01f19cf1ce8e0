"""The models of a server: their names, their languages, and their latest version."""

import asyncio
import contextlib
import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from vaswani_jax.core import config, languages, locales
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service import background, language_names, model_files
from vaswani_jax.service.engine import Engine
from vaswani_jax.service.figures import Figures
from vaswani_jax.service.limits import Limits
from vaswani_jax.service.model_files import Origin
from vaswani_jax.service.refusals import Refusal

logger = logging.getLogger(__name__)
# No stamps of files.
NEVER = object()


@dataclasses.dataclass(frozen=True)
class Direction:
    """Two languages between which a model translates.

    Attributes:
        source: The locale of the texts.
        target: The locale of the translations, or "trees".
        tag: The tag before each line that the model translates so, or "".
    """

    source: str
    target: str
    tag: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class ServedModel:
    """A model that answers.

    Attributes:
        engine: The model, with its name and limits.
        version: The `model_files.version` of the files that it was loaded from.
    """

    engine: Engine
    version: object = None

    @property
    def name(self) -> str:
        """The name that requests give."""
        return self.engine.name

    @property
    def settings(self) -> config.Config:
        """All settings of its run."""
        return self.engine.translator.config

    @functools.cached_property
    def directions(self) -> tuple[Direction, ...]:
        """The languages that it translates between."""
        data = self.settings.data
        if self.engine.translator.vocabulary.is_trees:
            return (Direction(data.source_locale, language_names.TREES),)
        tags = languages.locales_by_tag(data)
        if not tags:
            return (Direction(data.source_locale, data.target_locale),)
        return tuple(
            Direction(data.source_locale, locale, f"{tag} ")
            for tag, locale in tags.items()
        )


class Loader:
    """Loads models for a server."""

    def __init__(self, load: Callable[[str], Translator], *, limits: Limits) -> None:
        """Keep the parts that every model needs.

        Args:
            load: Loads the model that a path names.
            limits: The limits of the server; without beam sizes, a model has its own.
        """
        self._load = load
        self._limits = limits

    def load(self, origin: Origin) -> ServedModel:
        """Load a model; its engine does not run yet.

        Raises:
            ValueError, OSError, ImportError: As `vaswani_jax.load`.
        """
        stamps = model_files.version(origin.path)
        try:
            translator = self._load(origin.path)
            limits = self._limits
            if not limits.beam_sizes:
                beam_size = translator.config.search.beam_size
                limits = dataclasses.replace(limits, beam_sizes=(beam_size,))
            return ServedModel(
                Engine(translator, limits=limits, name=origin.name), stamps
            )
        except ValueError as error:
            if origin.path in str(error):
                raise
            raise ValueError(f"{origin.path}: {error}") from None


class Models:
    """The models that answer, each by its name.

    Attributes:
        limits: The limits of a request to any of them.
    """

    def __init__(
        self,
        served: Sequence[ServedModel],
        *,
        limits: Limits,
        origins: Sequence[Origin] = (),
        loader: Loader | None = None,
        prepare: Callable[[ServedModel], None] = lambda served: None,
    ) -> None:
        """Keep the models; none is compiled and no engine runs.

        Args:
            served: The models, the default first.
            limits: The limits of requests.
            origins: The origins of the models, to look for later versions.
            loader: Loads these.
            prepare: Called for each model when its programs are compiled, before it
                answers.
        """
        self.limits = limits
        self._by_name = {model.name: model for model in served}
        self._origins = tuple(origins)
        self._loader = loader
        self._prepare = prepare
        self._failed: dict[str, object] = {}
        self._unreadable: set[str] = set()
        self._drains: set[asyncio.Task[None]] = set()
        self._running: set[Engine] = set()
        # Engines that were replaced: those that still answer, and the sums of the rest.
        self._retiring: set[Engine] = set()
        self._retired_figures: dict[str, Figures] = {}
        # Each is set when a request is answered.
        self._requests: set[asyncio.Event] = set()

    @property
    def all(self) -> tuple[ServedModel, ...]:
        """The models, the default first."""
        return tuple(self._by_name.values())

    def figures(self) -> Mapping[str, Figures]:
        """Return the figures of each model, with those of its earlier versions."""
        sums = dict.fromkeys(self._by_name, Figures()) | self._retired_figures
        for engine in (*(served.engine for served in self.all), *self._retiring):
            sums[engine.name] += engine.figures()
        return sums

    async def start(self) -> None:
        """Compile the programs of the models, and begin to answer."""
        for served in self.all:
            await background.run(functools.partial(self._warm, served))
            self._begin(served.engine)

    async def drain(self) -> None:
        """Answer the requests that the engines have accepted, and end them."""
        await asyncio.gather(*(engine.drain() for engine in self._running))
        await asyncio.gather(*self._drains)

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """Keep all models that a request may choose until it is answered.

        A request may need a model several times, as for a translation and its words.
        """
        is_answered = asyncio.Event()
        self._requests.add(is_answered)
        try:
            yield
        finally:
            self._requests.discard(is_answered)
            is_answered.set()

    async def refresh(self, *, has_urls: bool) -> None:
        """Replace each model whose files have changed, if the new ones can be loaded.

        The old model ends when all requests that began before are answered.

        Args:
            has_urls: Whether models at URLs, whose changes are not seen, are loaded
                again, too.
        """
        for origin in self._origins:
            served = self._by_name[origin.name]
            try:
                stamps = await background.run(
                    functools.partial(model_files.version, origin.path)
                )
            except OSError as error:
                if origin.name not in self._unreadable:
                    logger.error(f"{origin.name}: its files cannot be read: {error}")
                self._unreadable.add(origin.name)
                continue
            self._unreadable.discard(origin.name)
            has_changed = has_urls if stamps is None else stamps != served.version
            # A signal retries: memory may have been short.
            has_failed = not has_urls and stamps == self._failed.get(origin.name, NEVER)
            if not has_changed or has_failed or self._loader is None:
                continue
            try:
                new = await background.run(functools.partial(self._loader.load, origin))
                await background.run(functools.partial(self._warm, new))
            except Exception as error:  # The old model answers, whatever is raised.
                self._failed[origin.name] = stamps
                logger.error(
                    f"{origin.name}: the changed model cannot be loaded, the old one "
                    f"still answers: {error}"
                )
                continue
            self._begin(new.engine)
            self._by_name[origin.name] = new
            self._failed.pop(origin.name, None)
            checkpoint = new.engine.translator.checkpoint_name
            logger.info(f"{origin.name}: loaded again, checkpoint {checkpoint}")
            self._running.discard(served.engine)
            self._retiring.add(served.engine)
            task = asyncio.create_task(self._retire(served.engine, set(self._requests)))
            self._drains.add(task)
            task.add_done_callback(self._drains.discard)

    async def _retire(self, engine: Engine, requests: Iterable[asyncio.Event]) -> None:
        """Drain an engine when all requests that may need it are answered."""
        for answered in requests:
            await answered.wait()
        await engine.drain()
        self._retired_figures[engine.name] = (
            self._retired_figures.get(engine.name, Figures()) + engine.figures()
        )
        self._retiring.discard(engine)

    def _warm(self, served: ServedModel) -> None:
        served.engine.warm()
        self._prepare(served)

    def _begin(self, engine: Engine) -> None:
        engine.start(count_requests=lambda: len(self._requests))
        self._running.add(engine)

    def choose(
        self, *, model: str | None, source: str | None, target: str | None
    ) -> tuple[ServedModel, Direction]:
        """Return the model that a request means, and its languages.

        Among the models with the requested languages and scripts, it is the one whose
        locales match best. The source counts more than the target; of equals, the first
        is taken.

        Raises:
            Refusal: There is none; the message lists those that there are.
        """
        if model is not None and model not in self._by_name:
            raise Refusal(
                422,
                f"there is no model {model[:100]!r}, there is "
                f"{', '.join(self._by_name)}",
                field="model",
            )
        pairs = [
            (served, direction)
            for served in self.all
            if model in (None, served.name)
            for direction in served.directions
        ]
        sides = (("source", source), ("target", target))
        requested = {field: locale for field, locale in sides if locale is not None}
        for field, locale in requested.items():
            fitting = [
                pair
                for pair in pairs
                if language_names.rank(getattr(pair[1], field), locale)
            ]
            if not fitting:
                available = dict.fromkeys(
                    locales.web_tag(getattr(direction, field)) for _, direction in pairs
                )
                source_note = (
                    f" from {source[:20]!r}" if field == "target" and source else ""
                )
                raise Refusal(
                    422,
                    f"no model translates{source_note} {_TO[field]} {locale[:20]!r}, "
                    f"there is {', '.join(available)}",
                    field=field,
                )
            pairs = fitting

        def ranks(pair: tuple[ServedModel, Direction]) -> list[int]:
            return [
                language_names.rank(getattr(pair[1], field), locale)
                for field, locale in requested.items()
            ]

        return max(pairs, key=ranks)  # The first of equals.

    def targets_by_source(self) -> Mapping[str, Sequence[str]]:
        """Return the languages that texts of each language can be translated to."""
        targets: dict[str, list[str]] = {}
        for served in self.all:
            for direction in served.directions:
                codes = targets.setdefault(locales.web_tag(direction.source), [])
                if (target := locales.web_tag(direction.target)) not in codes:
                    codes.append(target)
        return targets


_TO = {"source": "from", "target": "to"}
