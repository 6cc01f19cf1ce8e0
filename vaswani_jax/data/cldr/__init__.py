"""The demo's text, which needs no download: localised phrases of the Unicode CLDR."""
