package io.weft.spark.feed;

import io.weft.spark.sql.ScalaInterop;
import java.io.Serializable;
import java.nio.ByteBuffer;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.util.JavaUtils;
import scala.reflect.ClassTag;

/**
 * The result of a rank's function, as it is sent to the driver. Like the function, it uses Java
 * serialization: {@code spark.serializer} may be Kryo, which cannot read records.
 */
record RankResult<T>(int rank, T result) implements Serializable {
  byte[] encode() {
    return JavaUtils.bufferToArray(
        SparkEnv.get().closureSerializer().newInstance().serialize(this, tag()));
  }

  static <T> RankResult<T> decode(byte[] bytes) {
    ClassTag<RankResult<T>> tag = tag();
    return SparkEnv.get()
        .closureSerializer()
        .newInstance()
        .deserialize(ByteBuffer.wrap(bytes), Thread.currentThread().getContextClassLoader(), tag);
  }

  private static <T> ClassTag<RankResult<T>> tag() {
    return ScalaInterop.erasedTag(RankResult.class);
  }
}
