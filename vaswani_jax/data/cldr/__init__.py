"""The embedded default's text: localised phrases of the Unicode CLDR."""
