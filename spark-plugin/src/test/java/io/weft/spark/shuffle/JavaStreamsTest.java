package io.weft.spark.shuffle;

import java.util.Map;

/** Streams of Java's serialization, Spark's default. */
class JavaStreamsTest extends StreamsContract {
  JavaStreamsTest() {
    super(Map.of());
  }
}
