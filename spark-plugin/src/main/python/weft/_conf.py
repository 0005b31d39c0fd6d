"""The settings that turn Weft on in a Spark session."""

from __future__ import annotations

import importlib.metadata
import pathlib
from typing import Dict

try:
    __version__ = importlib.metadata.version("weft-spark")
except importlib.metadata.PackageNotFoundError:  # Run from the sources, without the wheel.
    __version__ = "0"


def spark_conf(*more_jars: str) -> Dict[str, str]:
    """Returns the settings for ``SparkSession.builder.config(map=weft.spark_conf())``.

    The session must be new: Spark reads these settings when it starts.

    :param more_jars: jars of your own, which ``spark.jars`` also names
    :raises FileNotFoundError: if this package was not installed from its wheel
    """
    folder = pathlib.Path(__file__).resolve().parent / "jars"
    jars = sorted(str(jar) for jar in folder.glob("weft-spark-*.jar"))
    if not jars:
        raise FileNotFoundError(
            f"{folder} has no jar of Weft: install the wheel, or set spark.jars yourself"
        )
    return {
        "spark.jars": ",".join([*jars, *more_jars]),
        "spark.plugins": "io.weft.spark.WeftPlugin",
    }
