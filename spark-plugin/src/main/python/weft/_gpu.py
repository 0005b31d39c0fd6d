"""Queries with batches on the GPUs of Spark's executors, in sessions of PySpark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


# PySpark drops the view of a data frame that it gave to a query, and with it the frame's cache.
# So queries get another data frame. Spark's optimizer removes the filter.


def on_device(rows: DataFrame) -> DataFrame:
    """Puts rows on GPUs, as ``WeftGpu.onDevice`` does.

    :param rows: of a session with Weft, or of a client of Spark Connect
    """
    query = "SELECT * FROM weft_on_device(TABLE({rows}))"
    return rows.sparkSession.sql(query, rows=rows.where("true"))


def map_batches(rows: DataFrame, name: str) -> DataFrame:
    """Maps batches of rows on GPUs with a function that Spark's JVM has registered by name.

    ``WeftGpu.register``, or a class of the setting ``spark.weft.gpu.functions``, registers it.

    :param rows: see ``on_device``; best a result of it, or of its ``repartition``
    :param name: in any case. If there is none of this name, the error lists the others
    """
    query = "SELECT * FROM weft_map_batches(:name, TABLE({rows}))"
    return rows.sparkSession.sql(query, {"name": name}, rows=rows.where("true"))
