"""Tables, views, groups, epochs and quarantine of a store."""

from everview.catalog.catalog import Catalog
from everview.catalog.definitions import Definitions
from everview.catalog.draft import Draft
from everview.catalog.objects import (
    MAIN,
    NEW,
    Derived,
    Group,
    GroupKind,
    GroupProgress,
    IndexDefinition,
    Maintained,
    NamedQuery,
    Ordering,
    Past,
    ViewDefinition,
    ViewStatus,
)
from everview.catalog.quarantine import Quarantine, QuarantineEntry

__all__ = [
    "MAIN",
    "NEW",
    "Catalog",
    "Definitions",
    "Derived",
    "Draft",
    "Group",
    "GroupKind",
    "GroupProgress",
    "IndexDefinition",
    "Maintained",
    "NamedQuery",
    "Ordering",
    "Past",
    "Quarantine",
    "QuarantineEntry",
    "ViewDefinition",
    "ViewStatus",
]
