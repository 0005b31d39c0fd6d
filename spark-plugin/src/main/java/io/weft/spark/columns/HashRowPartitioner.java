package io.weft.spark.columns;

import io.weft.spark.columns.ColumnLayout.StorageForm;
import io.weft.spark.columns.HashBatchPartitioner.PartitionModulo;
import java.io.Serializable;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's hash partitioning of packed rows. It reads the keys where they are. Spark's generated
 * code writes each partition into a row of its own first, and is compiled again for each query.
 * Immutable. Serialized with the map tasks.
 */
public final class HashRowPartitioner implements Serializable {
  private static final long serialVersionUID = 1L;

  private final int[] ordinals;
  private final StorageForm[] forms;
  private final PartitionModulo partitions;

  private HashRowPartitioner(int[] ordinals, StorageForm[] forms, int partitions) {
    this.ordinals = ordinals;
    this.forms = forms;
    this.partitions = new PartitionModulo(partitions);
  }

  /**
   * Creates a partitioner that gives the same partitions as Spark's partitioning.
   *
   * @param output the columns of the rows
   * @return empty unless all keys are plain columns of simple types
   */
  public static Optional<HashRowPartitioner> of(
      HashPartitioning partitioning, Seq<Attribute> output) {
    List<DataType> types =
        CollectionConverters.asJava(partitioning.expressions()).stream()
            .map(Expression::dataType)
            .toList();
    return types.stream().allMatch(HashRowPartitioner::isSimple)
        ? HashBatchPartitioner.plainColumns(partitioning, output)
            .map(
                ordinals ->
                    new HashRowPartitioner(ordinals, forms(types), partitioning.numPartitions()))
        : Optional.empty();
  }

  /** Spark hashes long decimals in their shortest form, which rows need not have. */
  private static boolean isSimple(DataType type) {
    return ColumnarSchema.unsupportedReason(new StructType().add("key", type)).isEmpty()
        && ColumnHash.of(type) != null
        && form(type) != StorageForm.DECIMAL128;
  }

  private static StorageForm[] forms(List<DataType> types) {
    return types.stream().map(HashRowPartitioner::form).toArray(StorageForm[]::new);
  }

  private static StorageForm form(DataType type) {
    return ColumnLayout.of("key", type).form();
  }

  /** Returns the partition of a row. */
  public int partition(UnsafeRow row) {
    int hash = HashBatchPartitioner.SEED;
    for (int key = 0; key < ordinals.length; key++) {
      if (!row.isNullAt(ordinals[key])) {
        hash = hash(row, ordinals[key], forms[key], hash);
      }
    }
    return partitions.of(hash);
  }

  private static int hash(UnsafeRow row, int ordinal, StorageForm form, int seed) {
    return switch (form) {
      case BOOLEAN -> Murmur3_x86_32.hashInt(row.getBoolean(ordinal) ? 1 : 0, seed);
      case BYTE -> Murmur3_x86_32.hashInt(row.getByte(ordinal), seed);
      case SHORT -> Murmur3_x86_32.hashInt(row.getShort(ordinal), seed);
      case INT -> Murmur3_x86_32.hashInt(row.getInt(ordinal), seed);
      case LONG, DECIMAL64 -> Murmur3_x86_32.hashLong(row.getLong(ordinal), seed);
      case FLOAT -> ColumnHash.hashFloat(row.getFloat(ordinal), seed);
      case DOUBLE -> ColumnHash.hashDouble(row.getDouble(ordinal), seed);
      case STRING, BINARY -> hashBytes(row, row.getLong(ordinal), seed);
      default -> throw new IllegalStateException("a key of the form " + form + " has a value");
    };
  }

  /**
   * Hashes a text or bytes.
   *
   * @param place offset in the row, and in the lower half the length
   */
  private static int hashBytes(UnsafeRow row, long place, int seed) {
    long offset = row.getBaseOffset() + (place >>> Integer.SIZE);
    return Murmur3_x86_32.hashUnsafeBytes(row.getBaseObject(), offset, (int) place, seed);
  }
}
