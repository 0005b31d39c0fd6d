package io.weft.spark.shuffle;

import io.weft.spark.compat.RowSerializer;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.Serializer;

/** How records of a shuffle are written to chunks. The same on the driver and all executors. */
enum RecordRoute {
  /** Packed SQL rows: {@link RowsWriter}. */
  ROWS,
  /** Records in Kryo's format, with tensors copied directly: {@link KryoWriter}. */
  KRYO,
  /** Streams of the shuffle's serializer: {@link StreamWriter}. */
  STREAMS;

  static RecordRoute of(ShuffleDependency<?, ?, ?> dependency, SparkConf conf) {
    if (dependency.aggregator().isDefined() || dependency.keyOrdering().isDefined()) {
      return STREAMS;
    }
    Serializer serializer = dependency.serializer();
    if (RowSerializer.packsRows(serializer)) {
      return ROWS;
    }
    return KryoRecords.accepts(serializer, conf) ? KRYO : STREAMS;
  }
}
