package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.spark.collectives.WeftCollectives;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Runs a function on the ranks of a barrier stage. Stateless. */
public final class BarrierRanks {
  private BarrierRanks() {}

  /** The function of a rank without input; its result is serializable. */
  @FunctionalInterface
  public interface RankFunction<T> extends Serializable {
    T run(Communicator communicator) throws Exception;
  }

  /** The function of a rank, which gets the rows of its partition; its result is serializable. */
  @FunctionalInterface
  public interface RowsFunction<A, T> extends Serializable {
    T run(Communicator communicator, java.util.Iterator<A> rows) throws Exception;
  }

  /** Runs the function and returns the results in the order of the ranks. */
  public static <T> List<T> run(SparkContext context, int ranks, RankFunction<T> function) {
    List<Integer> numbers = IntStream.range(0, ranks).boxed().toList();
    return run(
        new JavaSparkContext(context).parallelize(numbers, ranks),
        (communicator, rows) -> function.run(communicator));
  }

  /** Runs the function on one rank for each partition; otherwise as the other method. */
  public static <A, T> List<T> run(JavaRDD<A> rows, RowsFunction<A, T> function) {
    ClassTag<Object> tag = ClassTag$.MODULE$.apply(Object.class);
    List<?> results =
        rows.rdd()
            .barrier()
            .mapPartitions(new OnRank<>(function), false, tag)
            .toJavaRDD()
            .collect();
    List<T> typed = new ArrayList<>();
    for (Object result : results) {
      @SuppressWarnings("unchecked")
      T one = (T) result;
      typed.add(one);
    }
    return typed;
  }

  /** A class, because a lambda cannot be both a Scala function and serializable. */
  private static final class OnRank<A, T>
      implements Function1<Iterator<A>, Iterator<Object>>, Serializable {
    private static final long serialVersionUID = 1L;

    private final RowsFunction<A, T> function;

    OnRank(RowsFunction<A, T> function) {
      this.function = function;
    }

    @Override
    public Iterator<Object> apply(Iterator<A> partition) {
      try {
        Object result =
            function.run(WeftCollectives.communicator(), CollectionConverters.asJava(partition));
        return CollectionConverters.asScala(Collections.singleton(result).iterator());
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
