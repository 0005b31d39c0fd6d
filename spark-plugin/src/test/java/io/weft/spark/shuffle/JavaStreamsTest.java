package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.weft.spark.shuffle.JavaStream.CountedOutput;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.serializer.JavaSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/** Streams of Java's serialization, Spark's default. */
class JavaStreamsTest extends StreamsContract {
  JavaStreamsTest() {
    super(Map.of());
  }

  @Test
  void anObjectThatCannotBeSerializedIsNamed() {
    Throwable failure =
        catchThrowable(
            () ->
                new JavaSparkContext(spark().session().sparkContext())
                    .parallelize(List.of(1, 2))
                    .mapToPair(i -> new Tuple2<>(i, new Object[] {new Object()}))
                    .groupByKey(3)
                    .count());
    assertThat(failure)
        .hasStackTraceContaining("not serializable result: java.lang.Object")
        .hasStackTraceContaining("Serialization stack");
  }

  /** Spark's stream forgets shared objects after 100 records; this one after bytes too. */
  @ParameterizedTest
  @CsvSource({"1, 20", "1000, 300", "65536, 3000"})
  void sparksSerializerReadsTheStream(long resetBytes, int records) throws IOException {
    List<Tuple2<Object, Object>> written = new ArrayList<>();
    String shared = "shared ".repeat(20);
    Bytes bytes = new Bytes();
    try (JavaStream stream = new JavaStream(bytes, resetBytes, new SparkConf(false))) {
      for (int i = 0; i < records; i++) {
        Tuple2<Object, Object> record = new Tuple2<>(i, i % 3 == 0 ? null : shared + i % 5);
        written.add(record);
        assertThat(stream.writeKey(record._1(), ClassTag.Any())).isSameAs(stream);
        assertThat(stream.writeValue(record._2(), ClassTag.Any())).isSameAs(stream);
      }
    }
    var read =
        new JavaSerializer(new SparkConf(false))
            .newInstance()
            .deserializeStream(new ByteArrayInputStream(bytes.out.toByteArray()))
            .asKeyValueIterator();
    assertThat(CollectionConverters.asJava(read.toSeq())).isEqualTo(written);
  }

  @Test
  void aResetThatTheUserSetIsKept() {
    SparkConf conf = new SparkConf(false);
    assertThat(JavaStream.replaces(new JavaSerializer(conf), conf)).isTrue();
    conf.set("spark.serializer.objectStreamReset", "7");
    assertThat(JavaStream.replaces(new JavaSerializer(conf), conf)).isFalse();
  }

  private static final class Bytes extends CountedOutput {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();

    @Override
    public void write(int oneByte) {
      out.write(oneByte);
    }

    @Override
    long count() {
      return out.size();
    }
  }
}
