package io.weft.spark.collectives;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.rdd.RDD;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Runs barrier stages whose tasks answer with a text each. */
final class BarrierJobs {
  private BarrierJobs() {}

  /** The work of a task. */
  interface Part extends Serializable {
    String run(BarrierTaskContext context) throws Exception;
  }

  /** A serializable Scala function. */
  private interface TaskFunction<A, B> extends Function1<A, B>, Serializable {}

  /** The tasks' answers, by rank. Spark does not repeat such a job when a task fails. */
  static List<String> run(SparkContext context, int tasks, Part part) {
    return answers(context, tasks, part).collect();
  }

  /** The answers in any order. A shuffle follows the stage, so that Spark repeats it. */
  static List<String> runThenShuffle(SparkContext context, int tasks, Part part) {
    return answers(context, tasks, part).repartition(1).collect();
  }

  private static JavaRDD<String> answers(SparkContext context, int tasks, Part part) {
    List<Integer> numbers = IntStream.range(0, tasks).boxed().toList();
    RDD<Integer> rdd = new JavaSparkContext(context).parallelize(numbers, tasks).rdd();
    TaskFunction<Iterator<Integer>, Iterator<String>> function = ignored -> answer(part);
    ClassTag<String> tag = ClassTag$.MODULE$.apply(String.class);
    return new JavaRDD<>(rdd.barrier().mapPartitions(function, false, tag), tag);
  }

  private static Iterator<String> answer(Part part) {
    try {
      return CollectionConverters.asScala(List.of(part.run(BarrierTaskContext.get())).iterator());
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }

  /** All-reduces one number by rank, 1 to n, and gives the sum. */
  static long sumOfRanks(Communicator communicator) {
    ByteBuffer memory = ByteBuffer.allocateDirect(8).order(ByteOrder.nativeOrder());
    memory.putLong(0, communicator.rank() + 1);
    communicator.allReduce(TypedBuffer.wrap(memory, DataType.INT64), ReduceOp.SUM);
    return memory.getLong(0);
  }
}
