"""Models have languages, and are loaded again when their files change."""

import asyncio
import dataclasses
import os
import threading

import pytest

from tests import settings
from tests.service import shouting
from tests.service.shouting import ShoutingEngine
from vaswani_jax.inference.translator import Translator
from vaswani_jax.service import model_files
from vaswani_jax.service.limits import Limits
from vaswani_jax.service.model_files import Origin
from vaswani_jax.service.models import Loader, Models, ServedModel
from vaswani_jax.service.refusals import Refusal


def choose(served, **requested):
    names = dict.fromkeys(("model", "source", "target")) | requested
    return served.choose(**names)


@pytest.fixture
def served():
    """Models of English to German, English to German and French, German to English."""
    directions = [
        {"name": "one", "data.source_locale": "en", "data.target_locale": "de"},
        {"name": "two", **settings.TWO_TARGETS, "data.source_locale": "en_GB"},
        {"name": "back", "data.source_locale": "de", "data.target_locale": "en"},
    ]
    return shouting.models_of(*(ShoutingEngine(**each) for each in directions))


@pytest.mark.parametrize(
    ("requested", "name", "target"),
    [
        ({}, "one", "de"),
        ({"target": "fr"}, "two", "fr"),
        ({"source": "en", "target": "fr"}, "two", "fr"),
        ({"source": "en-GB", "target": "de-AT"}, "two", "de"),
        ({"source": "de"}, "back", "en"),
        ({"target": "en-US"}, "back", "en"),
        ({"source": "en-GB"}, "two", "de"),
        ({"model": "two"}, "two", "de"),
        ({"model": "two", "source": "en"}, "two", "de"),
    ],
)
def test_the_first_model_that_fits_answers(served, requested, name, target):
    model, direction = choose(served, **requested)
    assert (model.name, direction.target) == (name, target)


@pytest.mark.parametrize(
    ("requested", "field", "available"),
    [
        ({"model": "three"}, "model", "one, two, back"),
        ({"model": "back", "source": "en"}, "source", "de"),
        ({"source": "de", "target": "fr"}, "target", "en"),
        ({"target": "x" * 1000}, "target", "de, fr, en"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(served, requested, field, available):
    with pytest.raises(Refusal) as raised:
        choose(served, **requested)
    assert raised.value.field == field
    assert raised.value.message.endswith(f"there is {available}")
    assert len(raised.value.message) < 200


@pytest.mark.parametrize(
    ("requested", "target"),
    [
        ("zh", "zh_CN"),
        ("zh-Hans", "zh_CN"),
        ("zh-SG", "zh_CN"),
        ("zh-Hant", "zh_TW"),
        ("zh-HK", "zh_TW"),
        ("zh-Hant-CN", "zh_TW"),
    ],
)
def test_a_model_that_writes_the_requested_script_answers(requested, target):
    engines = (
        ShoutingEngine(name=name, **{"data.target_locale": name})
        for name in ("zh_CN", "zh_TW")
    )
    _, direction = choose(shouting.models_of(*engines), target=requested)
    assert direction.target == target


@pytest.mark.parametrize("requested", ["zh-Hant", "zh-TW"])
def test_a_model_that_writes_another_script_does_not_answer(requested):
    served = shouting.models_of(ShoutingEngine(**{"data.target_locale": "zh_CN"}))
    with pytest.raises(Refusal) as raised:
        choose(served, target=requested)
    assert raised.value.field == "target"
    message = f"no model translates to '{requested}', there is zh-CN"
    assert raised.value.message == message
    _, direction = choose(served, target="zh")
    assert direction.target == "zh_CN"


class FileLoader(Loader):
    """Loads a model of a file, whose text is its target language or "damaged"."""

    def __init__(self, file):
        self.file = file
        self.origin = Origin("a", str(file))
        self.loads = []

    def write(self, text):
        stamp = len(self.loads) + 1
        self.file.write_text(text)
        os.utime(self.file, ns=(stamp, stamp))

    def load(self, origin):
        locale = self.file.read_text()
        self.loads.append(locale)
        if locale == "damaged":
            raise ValueError("it is damaged")
        engine = ShoutingEngine(name="a", **{"data.target_locale": locale})
        return ServedModel(engine, model_files.version(origin.path))


@pytest.fixture
def loader(tmp_path):
    loader = FileLoader(tmp_path / "model")
    loader.write("de")
    return loader


@pytest.fixture
def running(loader):
    return Models(
        [loader.load(loader.origin)],
        limits=shouting.LIMITS,
        origins=[loader.origin],
        loader=loader,
    )


def test_a_changed_model_replaces_the_old_one_which_ends_its_work(loader, running):
    async def run():
        await running.start()
        [old] = running.all
        await running.refresh(has_urls=False)
        assert running.all == (old,)
        loader.write("fr")
        await running.refresh(has_urls=False)
        [new] = running.all
        assert new.directions[0].target == "fr"
        assert new.engine.is_running
        await asyncio.sleep(0)
        assert not old.engine.is_running
        await running.drain()
        assert not new.engine.is_running

    asyncio.run(run())
    assert loader.loads == ["de", "fr"]


def test_a_request_is_answered_by_the_models_of_its_begin(loader, running):
    async def run():
        await running.start()
        [old] = running.all
        with running.request():
            loader.write("fr")
            await running.refresh(has_urls=False)
            [new] = running.all
            await asyncio.sleep(0.01)
            assert old.engine.is_running
            with running.request():
                loader.loads.append("")  # The next file has another time.
                loader.write("es")
                await running.refresh(has_urls=False)
            await asyncio.sleep(0.01)
            assert old.engine.is_running and new.engine.is_running
        await asyncio.sleep(0.01)
        assert not old.engine.is_running and not new.engine.is_running
        assert running.all[0].engine.is_running

    asyncio.run(run())


@pytest.mark.parametrize("step", ["version", "load"])
def test_the_end_of_the_server_does_not_wait_for_a_reload(
    step, loader, running, monkeypatch
):
    start, gate, end = (threading.Event() for _ in range(3))

    def block(argument):
        start.set()
        gate.wait(10)
        end.set()

    async def main():
        await running.start()
        loader.write("fr")
        owner = model_files if step == "version" else loader
        monkeypatch.setattr(owner, step, block)
        task = asyncio.create_task(running.refresh(has_urls=False))
        await asyncio.to_thread(start.wait, 10)
        assert not task.done()

    asyncio.run(main())
    assert not end.is_set()
    gate.set()
    assert end.wait(10)


def test_a_damaged_model_leaves_the_old_one_and_is_told_once(loader, running, caplog):
    async def run():
        await running.start()
        [old] = running.all
        loader.write("damaged")
        for _ in range(3):
            await running.refresh(has_urls=False)
        assert running.all == (old,)
        assert old.engine.is_running
        loader.write("fr")
        await running.refresh(has_urls=False)
        assert running.all[0].directions[0].target == "fr"

    asyncio.run(run())
    assert loader.loads == ["de", "damaged", "fr"]
    assert caplog.text.count("the old one still answers: it is damaged") == 1


def test_a_model_at_a_url_is_loaded_again_only_if_that_is_asked_for(loader):
    origin = Origin("a", "s3://box/run")
    running = Models(
        [dataclasses.replace(loader.load(origin), version=None)],
        limits=shouting.LIMITS,
        origins=[origin],
        loader=loader,
    )

    async def run():
        await running.start()
        for _ in range(3):
            await running.refresh(has_urls=False)
        assert len(loader.loads) == 1
        await running.refresh(has_urls=True)
        assert len(loader.loads) == 2

    asyncio.run(run())


def test_a_loaded_model_has_its_own_beam_size_unless_the_server_has_some():
    small = settings.small_settings(**{"search.beam_size": 3})
    translator = Translator(small, shouting.vocabulary(), members=[])
    for sizes, expected in (((), (3,)), ((4, 1), (4, 1))):
        loader = Loader(lambda path: translator, limits=Limits(beam_sizes=sizes))
        served = loader.load(Origin("a", "none"))
        assert served.engine.limits.beam_sizes == expected


@pytest.mark.parametrize("reason", ["it is damaged", "runs/a: it is damaged"])
def test_an_error_names_the_model_once(reason):
    def fail(path):
        raise ValueError(reason)

    with pytest.raises(ValueError) as raised:
        Loader(fail, limits=Limits()).load(Origin("a", "runs/a"))
    assert str(raised.value) == "runs/a: it is damaged"


def test_a_model_that_samples_is_refused():
    small = settings.small_settings(**{"search.sampling": True})
    sampler = Translator(small, shouting.vocabulary(), members=[])
    loader = Loader(lambda path: sampler, limits=Limits())
    with pytest.raises(ValueError, match=r"^runs/a: config\.search\.sampling=True"):
        loader.load(Origin("a", "runs/a"))


def test_a_signal_tries_a_failed_model_again(loader, running, caplog):
    async def run():
        await running.start()
        loader.write("damaged")
        for has_urls, count in ((False, 1), (False, 1), (True, 2)):
            await running.refresh(has_urls=has_urls)
            assert caplog.text.count("it is damaged") == count

    asyncio.run(run())


def test_reloading_continues_after_files_were_unreadable(
    loader, running, caplog, monkeypatch
):
    async def run():
        await running.start()
        with monkeypatch.context() as patch:
            patch.setattr(model_files, "version", lambda path: os.listdir("/nowhere"))
            for _ in range(2):
                await running.refresh(has_urls=False)
        loader.file.unlink()  # Its files are gone for a while, too.
        for _ in range(2):
            await running.refresh(has_urls=False)
        loader.write("fr")
        await running.refresh(has_urls=False)
        assert running.all[0].directions[0].target == "fr"

    asyncio.run(run())
    assert caplog.text.count("a: its files cannot be read: ") == 1
