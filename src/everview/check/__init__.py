"""Is the view right? Recomputed from the base tables, by code that maintenance does not use."""
