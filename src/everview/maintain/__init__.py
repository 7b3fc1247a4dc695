"""Views kept up to date: plans of groups, their epochs, and views that are being built."""

from __future__ import annotations

from everview.maintain.maintainer import Maintainer
from everview.maintain.plans import Plans
from everview.maintain.tasks import Chunk, EpochTask

__all__ = ["Chunk", "EpochTask", "Maintainer", "Plans"]
