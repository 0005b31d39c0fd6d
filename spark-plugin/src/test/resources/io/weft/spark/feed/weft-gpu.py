"""Prints the queries that the package runs in a session: python3 weft-gpu.py <package> <name>

The session is a stand-in for PySpark's. Like that one it gives data frames of a query names,
which are dropped after it.
"""
import json
import sys

sys.path.insert(0, sys.argv[1])
import weft


class Frame:
    def __init__(self, session, view):
        self.sparkSession, self.view = session, view

    def where(self, condition):
        return self.sparkSession.sql(f"SELECT * FROM {self.view} WHERE {condition}")


class Session:
    def __init__(self):
        self.queries = []

    def sql(self, query, args=None, **frames):
        text = query.format(**{name: frame.view for name, frame in frames.items()})
        dropped = [frame.view for frame in frames.values()]
        self.queries.append({"text": text, "arguments": args or {}, "dropped": dropped})
        return Frame(self, f"result_{len(self.queries)}")


session = Session()
weft.map_batches(weft.on_device(Frame(session, "trips")), sys.argv[2])
json.dump(session.queries, sys.stdout)
