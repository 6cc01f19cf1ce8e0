"""The JSON of a page has the numbers of its arrays, to half a level of a byte."""

import base64
import json

import numpy as np
import pytest

from tests.pages import samples
from vaswani_jax.pages import contents

PAGE = samples.page()


def test_weights_come_back_to_half_a_level():
    page = json.loads(json.dumps(contents.to_json(PAGE)))
    packed = page["sentences"][0]["views"][0]["attention"]
    given = PAGE.sentences[0].views[0].attention
    for kind in contents.KINDS:
        weights = getattr(given, kind)
        levels = np.frombuffer(base64.b64decode(packed[kind]), np.uint8)
        read = levels.reshape(packed["shapes"][kind]) / page["levels"]
        assert read.shape == weights.shape
        assert np.abs(read - weights).max() <= 0.5 / page["levels"] + 1e-7


def test_every_field_is_there_by_its_name():
    page = contents.to_json(PAGE)
    view = page["sentences"][0]["views"][0]
    assert view["attention"]["source"] == list(samples.SOURCE)
    assert view["attention"]["target_in"] == ["<s>", *samples.TARGET[:-1]]
    assert view["search"]["positions"][1][0]["fate"] == "finished"
    assert page["heads"]["heads"][0]["roles"] == ["positional: previous"]
    assert page["models"] == [{"name": "1000", "step": 1000}]


@pytest.mark.parametrize("weight", [float("nan"), -0.5, 1.5])
def test_what_is_no_weight_is_refused(weight):
    with pytest.raises(ValueError, match="attention weights must be"):
        contents.quantize(np.full((1, 1, 1, 1), weight))
