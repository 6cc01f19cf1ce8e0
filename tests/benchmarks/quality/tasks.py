"""Define the tasks: a text, a recipe, and the values that are equal for all systems."""

import dataclasses
import pathlib
from collections.abc import Mapping

SPLITS = ("valid", "test")


@dataclasses.dataclass(frozen=True)
class Task:
    """A text, our recipe for it, and when the systems are evaluated.

    Attributes:
        name: Its name on the command line.
        preset: Our recipe.
        minutes: The training time in minutes; a shorter run is a trial.
        choice_minutes: The training time with each of a peer's settings, of which the
            one with the lowest validation loss is chosen.
        evaluation_minutes: The minutes at which all systems are evaluated.
        beam: The beam size of all searches.
        checkpoint_every: Updates between checkpoints of ours, few enough for the
            largest average at the end of a run; the recipe may say more.
        files: The settings `config.data.*` that name files in the data's directory.
        split_valid: True if the lines of the validation set serve as both sets: the
            first, third, ... to choose settings, the others to test.
        shuffles_training_text: True if peers get the training pairs in random order,
            as not all of them shuffle a sorted text enough.
        title: Its name on the page.
        note: What the page says of its text, or "".
    """

    name: str
    preset: str
    minutes: float
    choice_minutes: float
    evaluation_minutes: tuple[float, ...]
    beam: int
    checkpoint_every: int
    files: Mapping[str, str]
    split_valid: bool
    shuffles_training_text: bool
    title: str
    note: str = ""

    @property
    def overrides(self) -> dict[str, str]:
        """The settings of our recipe that name the text."""
        return {f"data.{key}": value for key, value in self.files.items()}

    def split(self, lines: list[str]) -> dict[str, list[str]]:
        """Return the lines for each set, of a validation set that serves as both."""
        assert self.split_valid
        return {"valid": lines[::2], "test": lines[1::2]}


MULTI30K = Task(
    name="multi30k",
    preset="multi30k_ende",
    minutes=80,
    choice_minutes=10,
    evaluation_minutes=(20, 40, 80),
    beam=5,  # that of Revisit-MMT, whose result this model size has
    checkpoint_every=125,
    files={},  # The recipe names them.
    split_valid=False,
    shuffles_training_text=False,
    title="Multi30k, English to German, lower-cased and tokenised",
)
TATOEBA = Task(
    name="tatoeba",
    preset="own_text:small",
    minutes=60,
    choice_minutes=10,
    evaluation_minutes=(20, 40, 60),
    beam=4,
    checkpoint_every=125,
    files={
        "source_locale": "en",
        "target_locale": "fr",
        "train_source": "train.en",
        "train_target": "train.fr",
        "valid_source": "dev.en",
        "valid_target": "dev.fr",
        "test_source": "",
        "test_target": "",
    },
    split_valid=True,
    # It is sorted by length, and EOLE shuffles no more than 25,000 pairs at a time.
    shuffles_training_text=True,
    title="Tatoeba, English to French",
    note=(
        "Val and test are the odd and the even lines of dev, 829 each; dev and train "
        "share no line. Train is sorted by length, so peers get its pairs shuffled."
    ),
)
TASKS = {task.name: task for task in (MULTI30K, TATOEBA)}


def our_flags(task: Task, *, data: pathlib.Path, prepared: pathlib.Path) -> list[str]:
    """Return the preset and the flags that name its text and its prepared data."""
    settings = {
        "data.text_directory": str(data.resolve()),
        "data.directory": str(prepared.resolve()),
        **task.overrides,
    }
    return [
        task.preset,
        *(f"--config.{key}={value}" for key, value in settings.items()),
    ]
