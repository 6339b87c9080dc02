"""A collector with its log in PostgreSQL, full sync: uploads of many, single reports, and several hosts."""

import os
import shutil

from tests.postgres import Cluster, missing

from benchmarks.collector_workers import APART, MIXED, SINGLE, measured, show


def run(seconds: int = 6) -> None:
    if shutil.which("wrk") is None:
        print("collector-postgres: wrk is not installed (Debian's package wrk); nothing was measured")
        return
    if (why := missing()) is not None:
        print(f"collector-postgres: {why}; nothing was measured")
        return
    cluster = Cluster("")
    print(f"PostgreSQL as it comes, collector, database and load on {os.cpu_count()} cores, {seconds} s each")
    try:
        first = measured(cluster, APART, seconds=seconds)
        show("one host, uploads of 1,000, one group", first)
        show("one host, uploads of 1,000, all groups", measured(cluster, MIXED, seconds=seconds))
        show("two hosts, uploads of 1,000 to the owner", measured(cluster, APART, hosts=2, seconds=seconds), first)
        single = measured(cluster, SINGLE, seconds=seconds)
        show("one host, single reports, 64 connections", single)
        show("two hosts, single reports to the owner", measured(cluster, SINGLE, hosts=2, seconds=seconds), single)
        show("SQLite, single reports, 64 connections", measured(None, SINGLE, seconds=seconds), single)
    finally:
        cluster.remove()
