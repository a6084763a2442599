"""From statements to the steps of a program."""

from .cooperation import workspace
from .entry_parameters import EntryParameters
from .linking import Linked, link
