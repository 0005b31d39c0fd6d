package io.weft.spark.shuffle;

import com.esotericsoftware.kryo.Kryo;
import io.weft.spark.shuffle.RecordsReader.RecordFormat;
import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import scala.Product2;
import scala.Tuple2;

/**
 * Reads records of {@link KryoWriter}. Each record is a new object that the caller may keep. For
 * one task thread.
 */
final class KryoRecords<K, C> implements RecordFormat<K, C> {
  /** By name, because this package must not depend on the plugin's entry points. */
  static final String REGISTRATOR = "io.weft.spark.WeftKryoRegistrator";

  private static final String REGISTRATORS = "spark.kryo.registrator";

  private final Kryo kryo;
  private final RecordInput input = new RecordInput();

  KryoRecords(Serializer serializer) {
    this.kryo = newKryo(serializer);
  }

  /**
   * Whether records of this serializer take the Kryo route. The application must request it, and
   * the serializer must be Spark's own.
   */
  static boolean accepts(Serializer serializer, SparkConf conf) {
    return serializer.getClass() == KryoSerializer.class && areAskedFor(conf);
  }

  /** Whether the application requests the Kryo route. */
  static boolean areAskedFor(SparkConf conf) {
    return Arrays.stream(conf.get(REGISTRATORS, "").split(","))
        .anyMatch(name -> name.trim().equals(REGISTRATOR));
  }

  /** Creates a Kryo with the registrations of Spark and the application. */
  static Kryo newKryo(Serializer serializer) {
    return ((KryoSerializer) serializer).newKryo();
  }

  @Override
  @SuppressWarnings("unchecked")
  public Product2<K, C> read(long address, int bytes) {
    input.open(address, bytes);
    K key = (K) kryo.readClassAndObject(input);
    C value = (C) kryo.readClassAndObject(input);
    return new Tuple2<>(key, value);
  }
}
