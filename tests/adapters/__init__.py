"""The conformance suite: what every store must do, checked against a model in plain dictionaries."""
