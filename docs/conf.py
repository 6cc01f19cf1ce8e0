"""How Sphinx builds the site: `make docs`."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "_extensions"))

import vaswani_jax

project = "vaswani_jax"
author = "The vaswani_jax maintainers"
version = release = vaswani_jax.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "generated_reference",
    "paper",
    "shown_page",
]
exclude_patterns = ["_build", "results/*/*"]
html_theme = "furo"
html_title = f"vaswani_jax {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}

# Formulas between dollars; links to the headings of pages are checked.
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

# A page whose cells fail is no page.
nb_execution_mode = "cache"
# A cell's run stays out of the sources.
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 900
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
math_numfig = False

# What users type, without the prompt.
copybutton_prompt_text = "$ "
