"""The explorer: one HTML page with every instruction's layouts, and its sums explained, without any request.

The assets are a template, a style and modules in JavaScript without dependencies; `reference.js` is a transcription of
the numbered rules in `warpmma.arithmetic.exact.reference`; tests compare the two bit for bit in a browser.
"""

from .page_assembly import explorer_data, explorer_page

__all__ = ["explorer_data", "explorer_page"]
