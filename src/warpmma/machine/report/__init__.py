"""Reports of a launch: hazards, costs, bank conflicts, watched products."""

from .banks import BANKS, CANDIDATES, BankPattern, SharedSite, Swizzle, wavefronts
from .costs import Costs, no_site
from .hazards import KINDS, Hazard, HazardError, HazardWarning, NamedArray, Policy, Reporter, element_at
from .timeline import EVENTS, EventKind, Timeline, TimelineEvent, TimelineOperation
from .unpredicted import Unpredicted
from .watching import Watch, WatchedProduct, WatchedTile, Watching
