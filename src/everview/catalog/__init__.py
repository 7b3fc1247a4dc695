"""Tables, views, groups, epochs and quarantine of a store."""

from everview.catalog.catalog import Catalog
from everview.catalog.definitions import Definitions
from everview.catalog.draft import Draft
from everview.catalog.objects import MAIN, NEW, Epochs, Group, GroupKind, Past, ViewDefinition, ViewStatus
from everview.catalog.quarantine import Quarantine, QuarantineEntry

__all__ = [
    "MAIN",
    "NEW",
    "Catalog",
    "Definitions",
    "Draft",
    "Epochs",
    "Group",
    "GroupKind",
    "Past",
    "Quarantine",
    "QuarantineEntry",
    "ViewDefinition",
    "ViewStatus",
]
