package io.weft.spark;

import com.esotericsoftware.kryo.Kryo;
import io.weft.collectives.buffer.DataType;
import io.weft.spark.kryo.TensorSerializer;
import io.weft.spark.kryo.TensorTypeSerializer;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import org.apache.spark.serializer.KryoRegistrator;

/**
 * Makes {@link Tensor}s records of RDDs: they can be shuffled, collected, broadcast and cached in
 * serialized form. With {@code spark.serializer=org.apache.spark.serializer.KryoSerializer} and
 * this class named in {@code spark.kryo.registrator}, shuffles of RDDs that neither aggregate nor
 * sort go through Weft, whatever their records are.
 */
public final class WeftKryoRegistrator implements KryoRegistrator {
  @Override
  public void registerClasses(Kryo kryo) {
    kryo.register(DataType.class);
    kryo.register(TensorType.class, new TensorTypeSerializer());
    kryo.register(Tensor.class, new TensorSerializer());
  }
}
