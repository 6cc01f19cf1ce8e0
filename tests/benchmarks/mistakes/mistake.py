"""What a planted mistake is."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A change of the code at a place, and the tests that must fail after it.

    Attributes:
        name: What is wrong, in words.
        location: The dotted end of the name of a function, class, constant or module.
        sound: The code there; spaces do not count, and $name stands for any identifier.
        mistaken: What takes its place.
        proof: The tests, as pytest's arguments.
    """

    name: str
    location: str
    sound: str
    mistaken: str
    proof: str
