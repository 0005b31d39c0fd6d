package io.weft.spark;

import com.esotericsoftware.kryo.Kryo;
import io.weft.collectives.DataType;
import io.weft.spark.shuffle.TensorSerializer;
import io.weft.spark.shuffle.TensorSerializer.TensorTypeSerializer;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import org.apache.spark.serializer.KryoRegistrator;

/**
 * Registers {@link Tensor}s with Kryo, so that RDDs can shuffle, collect, broadcast and cache them
 * in serialized form. Set {@code spark.serializer=org.apache.spark.serializer.KryoSerializer} and
 * name this class in {@code spark.kryo.registrator}. Shuffles of RDDs that neither aggregate nor
 * sort then go through Weft, for all types of records.
 */
public final class WeftKryoRegistrator implements KryoRegistrator {
  @Override
  public void registerClasses(Kryo kryo) {
    kryo.register(DataType.class);
    kryo.register(TensorType.class, new TensorTypeSerializer());
    kryo.register(Tensor.class, new TensorSerializer());
  }
}
