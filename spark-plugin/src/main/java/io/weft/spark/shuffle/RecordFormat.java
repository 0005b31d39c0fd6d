package io.weft.spark.shuffle;

import scala.Product2;

/** Reads records from bytes. For one task thread. */
interface RecordFormat<K, C> {
  /**
   * Reads a record.
   *
   * @param bytes a multiple of 8
   */
  Product2<K, C> read(long address, int bytes);
}
