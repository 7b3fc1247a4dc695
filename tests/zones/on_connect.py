"""A client of Spark Connect, as a user writes it: ``python -m tests.zones.on_connect <server> <store>``.

It maintains the store's views until its standard input is closed, or until it is killed.
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import everview


def main(server: str, path: str) -> None:
    spark = SparkSession.builder.remote(server).getOrCreate()
    with everview.open(path, create=False) as db, db.maintain(spark=spark, operations=200):
        print("running", flush=True)
        sys.stdin.read()
    print("stopped", flush=True)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
