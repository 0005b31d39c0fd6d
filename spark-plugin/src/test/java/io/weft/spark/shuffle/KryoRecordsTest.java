package io.weft.spark.shuffle;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.WeftKryoRegistrator;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import org.junit.jupiter.api.Test;

class KryoRecordsTest {
  private static SparkConf conf(String registrators) {
    return new SparkConf(false).set("spark.kryo.registrator", registrators);
  }

  @Test
  void theNameIsThatOfTheRegistrator() {
    assertThat(KryoRecords.REGISTRATOR).isEqualTo(WeftKryoRegistrator.class.getName());
  }

  @Test
  void acceptsTheConfiguredSerializer() {
    Serializer kryo = new KryoSerializer(new SparkConf(false));
    assertThat(KryoRecords.accepts(kryo, conf(KryoRecords.REGISTRATOR))).isTrue();
    assertThat(KryoRecords.accepts(kryo, conf("a.B, " + KryoRecords.REGISTRATOR))).isTrue();
    assertThat(KryoRecords.accepts(kryo, conf("a.B"))).isFalse();
    assertThat(KryoRecords.accepts(kryo, new SparkConf(false))).isFalse();
  }

  @Test
  void acceptsNoOtherSerializer() {
    SparkConf conf = conf(KryoRecords.REGISTRATOR);
    assertThat(KryoRecords.accepts(new JavaSerializer(conf), conf)).isFalse();
    assertThat(KryoRecords.accepts(new KryoSerializer(conf) {}, conf)).isFalse();
  }
}
