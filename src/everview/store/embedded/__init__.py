"""The embedded store."""

from everview.store.embedded.store import EmbeddedStore

__all__ = ["EmbeddedStore"]
