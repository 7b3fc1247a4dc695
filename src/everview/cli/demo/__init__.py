"""The demonstration: a small shop under load, whose pipeline is killed in the middle of its work.

A writer and a pipeline on Spark run as processes of their own on one store, this process
watches them, kills the pipeline once, starts another, and recomputes all views at the end.

::

    shop.py       what is sold: three tables, five views of different kinds
    writer.py     the process that writes
    children.py   processes that leave nothing behind
    ending.py     signals that end it at any point
    story.py      what happens, in which order
    screen.py     how it is shown: live in a terminal, line by line elsewhere
    outcome.py    what has been shown, and whether it was right
"""
