"""Faults injected on purpose: does anything wrong get past what is tried before a view can be read?

A mutant is the product with one fault in one stage, and it is caught if none of its views would go
live with a plan.

Two things stand between a fault and a reader. Our reading of a query is not trusted unless DuckDB reads the same in
the user's words and in what we made of them (``everview.sql.own_parse``), and knows every part of it
(``everview.sql.refused_constructs``); and the plan is run over a sample and compared with DuckDB's answer to
the words (``everview.client.validating``). Each is asked by itself about each mutant, so the table of
``python -m tests.mutations`` shows what either would miss alone.
"""
