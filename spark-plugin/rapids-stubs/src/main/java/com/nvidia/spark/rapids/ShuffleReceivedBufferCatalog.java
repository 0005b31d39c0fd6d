package com.nvidia.spark.rapids;

/** What was received. */
public class ShuffleReceivedBufferCatalog {}
