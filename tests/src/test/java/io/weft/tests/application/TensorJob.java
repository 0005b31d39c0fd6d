package io.weft.tests.application;

import io.weft.collectives.DataType;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** An RDD of tensors, made by one stage and shuffled to another. */
public final class TensorJob {
  /** Tensors of the RDD. */
  public static final int COUNT = 600;

  private static final int PARTITIONS = 6;

  /** Limit of a value that bfloat16 represents exactly. */
  private static final int VALUES = 200;

  private TensorJob() {}

  /** Tensors by number; the RDD has been shuffled. */
  public static JavaPairRDD<Integer, Tensor> shuffled(SparkContext context) {
    return new JavaSparkContext(context)
        .parallelize(IntStream.range(0, COUNT).boxed().toList(), 8)
        .mapToPair(number -> new Tuple2<>(number, made(number)))
        .partitionBy(new HashPartitioner(PARTITIONS));
  }

  /** Checks the tensors where they arrived; returns one line for each of them, with its errors. */
  public static List<String> checks(JavaPairRDD<Integer, Tensor> tensors) {
    List<String> all =
        new ArrayList<>(tensors.map(entry -> check(entry._1(), entry._2())).collect());
    all.sort(null);
    return all;
  }

  /** The result of {@link #checks} if all tensors are right. */
  public static List<String> expected() {
    return IntStream.range(0, COUNT)
        .mapToObj(number -> number + " " + type(number))
        .sorted()
        .toList();
  }

  private static TensorType type(int number) {
    if (number % 10 == 0) {
      return TensorType.of(DataType.FLOAT32, 0);
    }
    DataType dtype = number % 2 == 0 ? DataType.FLOAT32 : DataType.INT64;
    return TensorType.of(dtype, 1 + number % 3, 5L * number);
  }

  private static Tensor made(int number) {
    TensorType type = type(number);
    Tensor tensor = number % 10 == 0 ? Tensor.empty(type.dtype()) : Tensor.allocate(type);
    for (int i = 0; i < type.elements(); i++) {
      if (type.dtype() == DataType.FLOAT32) {
        Memory.putFloat(tensor.address() + 4L * i, (number + i) % VALUES);
      } else {
        Memory.putLong(tensor.address() + 8L * i, ((long) number << 40) + i);
      }
    }
    return tensor;
  }

  /** Describes a tensor, and the expected one if it differs. */
  public static String check(int number, Tensor tensor) {
    Tensor expected = made(number);
    boolean shared = number % 10 == 0;
    boolean right =
        tensor.type().equals(expected.type())
            && tensor.byteBuffer().equals(expected.byteBuffer())
            && (tensor == Tensor.empty(tensor.type().dtype())) == shared;
    return number + " " + tensor.type() + (right ? "" : " has other content");
  }
}
