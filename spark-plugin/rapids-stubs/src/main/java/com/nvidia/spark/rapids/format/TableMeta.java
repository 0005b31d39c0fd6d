package com.nvidia.spark.rapids.format;

/** What a peer says of one of its tables. */
public class TableMeta {}
