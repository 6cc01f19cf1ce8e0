"""The parser of compiled programs, on texts as compilers write them."""

import pytest

from tests.hardware.compiled_texts import STEP
from vaswani_jax.hardware import hlo


@pytest.fixture(name="step")
def parsed_step() -> hlo.Module:
    return hlo.parse(STEP)


def test_computations_have_their_instructions(step: hlo.Module) -> None:
    assert step.entry == "main.5_spmd"
    names = ["region_1.2", "fused_move", "body", "condition", "main.5_spmd"]
    assert list(step.computations) == names
    assert [each.opcode for each in step.computations["region_1.2"]] == [
        "parameter",
        "parameter",
        "add",
    ]
    fusion = step.computations["body"][3]
    assert (fusion.name, fusion.operands) == ("fusion.9", ["get-tuple-element.2"])
    assert fusion.called == "region_1.2"


def test_a_text_without_an_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="no ENTRY"):
        hlo.parse("HloModule nothing\n")


@pytest.mark.parametrize(
    ("shape", "num_bytes"),
    [
        ("f32[]", 4),
        ("pred[3,5]{1,0}", 15),
        ("bf16[97,32,512]{2,1,0:T(8,128)(2,1)S(1)}", 97 * 32 * 512 * 2),
        ("(s32[2]{0}, /*index=1*/u8[3]{0}, token[])", 11),
        ("f8e4m3fn[7]{0}", 7),
        ("s4[6]{0}", 3),
        ("c64[2]{0}", 16),
    ],
)
def test_bytes_of_shapes(shape: str, num_bytes: int) -> None:
    assert hlo.num_bytes(shape) == num_bytes
