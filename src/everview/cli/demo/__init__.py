"""The demonstration: a small shop under load, whose pipeline is killed in the middle of its work.

A writer and a pipeline on Spark run as processes of their own on one store, this process
watches them, kills the pipeline once, starts another, and recomputes all views at the end.

::

    shop.py       the shop: three tables, five views of different kinds
    writer.py     the process that writes
    children.py   processes that leave nothing behind
    ending.py     signals that end it at any point
    story.py      the events, in their order
    screen.py     the output: live in a terminal, line by line elsewhere
    outcome.py    the results, and whether they were right
"""
