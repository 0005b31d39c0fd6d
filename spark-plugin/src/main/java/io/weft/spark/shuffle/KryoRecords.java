package io.weft.spark.shuffle;

import com.esotericsoftware.kryo.Kryo;
import io.weft.spark.kryo.RecordInput;
import java.util.Arrays;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import scala.Product2;
import scala.Tuple2;

/**
 * Reads what {@link KryoWriter} wrote. Records are objects of their own, so they can be kept. For
 * one task thread.
 */
final class KryoRecords<K, C> implements RecordFormat<K, C> {
  /** By name: it is among the plugin's entry points, which nothing here knows. */
  static final String REGISTRATOR = "io.weft.spark.WeftKryoRegistrator";

  private static final String REGISTRATORS = "spark.kryo.registrator";

  private final Kryo kryo;
  private final RecordInput input = new RecordInput();

  KryoRecords(Serializer serializer) {
    this.kryo = newKryo(serializer);
  }

  /**
   * Whether records of this serializer take this route: the application has to ask for it, and Kryo
   * has to be Spark's own.
   */
  static boolean takes(Serializer serializer, SparkConf conf) {
    return serializer.getClass() == KryoSerializer.class
        && Arrays.stream(conf.get(REGISTRATORS, "").split(","))
            .anyMatch(name -> name.trim().equals(REGISTRATOR));
  }

  /** A Kryo with all that Spark and the application register. */
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
