"""What findings are made of."""

import pytest

from vaswani_jax.text_checks import findings
from vaswani_jax.text_checks.findings import Severity


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.0, None), (0.009, None), (0.01, Severity.MINOR), (0.5, Severity.SERIOUS)],
)
def test_a_share_has_its_severity(share: float, severity: Severity | None) -> None:
    assert findings.severity_of(share, minor=0.01, serious=0.1) == severity


def test_a_part_of_a_long_line_is_shown_around_the_fault() -> None:
    line = "a" * 200 + "!" + "b" * 200
    shown = findings.shorten(line, center=200)
    assert "!" in shown and shown.startswith("...a") and shown.endswith("b...")
    assert findings.shorten("short") == "short"
    assert findings.shorten("a\x07b") == "a\\u0007b"
    # At an end of the line, nothing is said to go on there.
    assert findings.shorten(line, center=400).endswith("b")
