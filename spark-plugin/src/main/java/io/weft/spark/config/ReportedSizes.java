package io.weft.spark.config;

/** The sizes of blocks that Weft reports to Spark. */
public enum ReportedSizes {
  /** As Spark's own blocks would have, compressed with Spark's codec. */
  SPARK,
  /** The bytes that Weft's blocks occupy. */
  REAL
}
