package com.nvidia.spark.rapids.format;

/** The metadata of a peer's table. */
public class TableMeta {}
