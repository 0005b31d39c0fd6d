package io.weft.spark.shuffle;

import java.util.Map;

/** Streams of Kryo, whose serialized records can be reordered. */
class KryoStreamsTest extends StreamsContract {
  KryoStreamsTest() {
    super(Map.of("spark.serializer", "org.apache.spark.serializer.KryoSerializer"));
  }
}
