package io.weft.spark.shuffle;

import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.util.MutablePair;
import scala.Product2;

/**
 * Reads packed rows in place with one reused row object. As with Spark's reader, a row is valid
 * until the next one, and the last row until the task ends.
 */
final class PackedRows<K, C> implements RecordFormat<K, C> {
  private final UnsafeRow row;
  private final Product2<K, C> pair;

  /**
   * @param fields number of columns of a row
   */
  @SuppressWarnings("unchecked")
  PackedRows(int fields) {
    this.row = new UnsafeRow(fields);
    this.pair = (Product2<K, C>) new MutablePair<Object, Object>(0, row);
  }

  @Override
  public Product2<K, C> read(long address, int bytes) {
    row.pointTo(null, address, bytes);
    return pair;
  }
}
