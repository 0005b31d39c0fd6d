package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.weft.spark.shuffle.JavaStream.CountedOutput;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import scala.Tuple2;
import scala.reflect.ClassTag;

/** Streams of Java's serialization, Spark's default. */
class JavaStreamsTest extends StreamsContract {
  private static final ClassTag<Object> ANY = ClassTag.Any();
  private static final StructType INNER =
      new StructType().add("i", DataTypes.IntegerType).add("s", DataTypes.StringType);
  private static final StructType OUTER =
      new StructType().add("l", DataTypes.LongType).add("a", INNER).add("b", INNER);

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

  /** Values of all kinds, many times, so that the stream is reset within them. */
  @ParameterizedTest
  @ValueSource(longs = {1, 1000, 65_536})
  void valuesAreThoseThatWereWritten(long resetBytes) throws IOException {
    List<Object> values = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      values.addAll(values(i));
    }
    Bytes bytes = new Bytes();
    try (JavaStream.Writer writer =
        new JavaStream.Writer(bytes, resetBytes, new SparkConf(false))) {
      values.forEach(value -> assertThat(writer.writeObject(value, ANY)).isSameAs(writer));
    }
    InputStream in = new ByteArrayInputStream(bytes.out.toByteArray());
    try (JavaStream.Reader reader = new JavaStream.Reader(in, getClass().getClassLoader())) {
      for (Object value : values) {
        Object read = reader.readObject(ANY);
        assertThat(text(read)).isEqualTo(text(value));
      }
      assertThatThrownBy(() -> reader.readObject(ANY)).isInstanceOf(EOFException.class);
    }
  }

  /** Class and content of a value. */
  private static String text(Object value) {
    if (value == null) {
      return "null";
    }
    String content = value.toString();
    if (value instanceof byte[] bytes) {
      content = Arrays.toString(bytes);
    } else if (value instanceof int[] ints) {
      content = Arrays.toString(ints);
    } else if (value instanceof Row row) {
      content = row.schema() + " ";
      for (int i = 0; i < row.length(); i++) {
        content += text(row.get(i));
      }
    }
    return value.getClass().getName() + " " + content;
  }

  private static List<Object> values(int i) {
    Row inner = new GenericRowWithSchema(new Object[] {i, "inner"}, INNER);
    return Arrays.asList(
        null,
        i,
        i * 3_000_000_000L,
        i / 3.0,
        Double.NaN,
        i / 7f,
        (short) -i,
        (byte) i,
        i % 2 == 0,
        'c',
        "",
        "text \ud800 \u0000 ü " + i,
        "long ".repeat(100),
        new byte[i],
        new byte[70_000],
        new BigDecimal(i),
        new int[] {i},
        new Tuple2<>(i, "two"),
        RowFactory.create(i, null),
        new GenericRowWithSchema(new Object[] {(long) i, inner, inner}, OUTER),
        inner,
        new GenericRowWithSchema(new Object[] {null, null, null}, OUTER),
        new GenericRowWithSchema(new Object[] {i}, null),
        List.of(INNER),
        int.class);
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
