"""The explorer: one HTML page with every instruction's layouts, and its sums explained; it asks nobody for anything.

`page_data` turns the package's tables into JSON, `page_assembly` puts this and the assets into one file. The assets are
a template, a style and modules in JavaScript without dependencies; `reference.js` is a transcription of the numbered
rules in `warpmma.arithmetic.exact.reference`, which tests hold against it bit for bit in a browser.
"""

from .page_assembly import explorer_page
from .page_data import explorer_data

__all__ = ["explorer_data", "explorer_page"]
