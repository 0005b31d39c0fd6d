package io.weft.examples.train;

import io.weft.collectives.Communicator;
import io.weft.spark.collectives.WeftCollectives;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Function1;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;

/** Runs a function on the ranks of a barrier stage without input data. Stateless. */
public final class BarrierRanks {
  private BarrierRanks() {}

  /** The function of a rank; its result is serializable. */
  @FunctionalInterface
  public interface RankFunction<T> extends Serializable {
    T run(Communicator communicator) throws Exception;
  }

  /** Runs the function and returns the results in the order of the ranks. */
  public static <T> List<T> run(SparkContext context, int ranks, RankFunction<T> function) {
    List<Integer> numbers = IntStream.range(0, ranks).boxed().toList();
    ClassTag<Object> tag = ClassTag$.MODULE$.apply(Object.class);
    List<?> results =
        new JavaSparkContext(context)
            .parallelize(numbers, ranks)
            .rdd()
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
  private static final class OnRank<T>
      implements Function1<Iterator<Integer>, Iterator<Object>>, Serializable {
    private static final long serialVersionUID = 1L;

    private final RankFunction<T> function;

    OnRank(RankFunction<T> function) {
      this.function = function;
    }

    @Override
    public Iterator<Object> apply(Iterator<Integer> partition) {
      try {
        Object result = function.run(WeftCollectives.communicator());
        return CollectionConverters.asScala(Collections.singleton(result).iterator());
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
