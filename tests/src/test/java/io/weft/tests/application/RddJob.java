package io.weft.tests.application;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.apache.spark.HashPartitioner;
import org.apache.spark.SparkContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import scala.Tuple2;

/** Jobs whose RDDs are shuffled: grouped, combined, sorted or only moved. */
public enum RddJob {
  REPARTITION {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return numbers.repartition(5).map(String::valueOf);
    }
  },
  PARTITION_BY {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return lines(pairs(numbers).partitionBy(new HashPartitioner(7)));
    }
  },
  MANY_PARTITIONS {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      // Each task reads a hundred partitions in turn: a task for each would cost more.
      return lines(pairs(numbers).partitionBy(new HashPartitioner(2000)).coalesce(20));
    }
  },
  GROUP {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return pairs(numbers).groupByKey(5).map(group -> group._1() + " " + sorted(group._2()));
    }
  },
  REDUCE {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return lines(pairs(numbers).mapValues(i -> i == null ? 0 : i).reduceByKey(Integer::sum, 4));
    }
  },
  AGGREGATE {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return lines(pairs(numbers).aggregateByKey(0L, 3, (sum, i) -> sum + 1, Long::sum));
    }
  },
  DISTINCT {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return numbers.map(i -> "text " + i % 100).distinct(3);
    }
  },
  COGROUP {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return pairs(numbers)
          .cogroup(pairs(numbers).mapValues(i -> "value " + i).distinct(), 3)
          .map(e -> e._1() + " " + sorted(e._2()._1()) + " " + sorted(e._2()._2()));
    }
  },
  SORT {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return numbers
          .mapToPair(i -> new Tuple2<>((i * 7919) % 1_000_003, i))
          .sortByKey(false, 6)
          .map(String::valueOf);
    }

    @Override
    public List<String> run(SparkContext context, int records) {
      return texts(numbers(context, records)).collect(); // In the order of the sort.
    }
  },
  HUGE_RECORDS {
    @Override
    JavaRDD<String> texts(JavaRDD<Integer> numbers) {
      return numbers
          .filter(i -> i < 3)
          .mapToPair(i -> new Tuple2<>(i, filled(i)))
          .groupByKey(2)
          .map(e -> e._1() + " " + Arrays.equals(e._2().iterator().next(), filled(e._1())));
    }
  };

  private static final int HUGE_BYTES = 40 << 20;

  abstract JavaRDD<String> texts(JavaRDD<Integer> numbers);

  /** Runs the job on that many records; returns its result in an order that each run has. */
  public List<String> run(SparkContext context, int records) {
    List<String> texts = new ArrayList<>(texts(numbers(context, records)).collect());
    texts.sort(null);
    return texts;
  }

  static JavaRDD<Integer> numbers(SparkContext context, int records) {
    return new JavaSparkContext(context)
        .parallelize(IntStream.range(0, records).boxed().toList(), 6);
  }

  /** Pairs with null keys and null values among them. */
  static JavaPairRDD<String, Integer> pairs(JavaRDD<Integer> numbers) {
    return numbers.mapToPair(
        i -> new Tuple2<>(i % 37 == 5 ? null : "key " + i % 900, i % 41 == 0 ? null : i));
  }

  static JavaRDD<String> lines(JavaPairRDD<String, ?> pairs) {
    return pairs.map(entry -> entry._1() + " " + entry._2());
  }

  static List<String> sorted(Iterable<?> values) {
    List<String> sorted = new ArrayList<>();
    values.forEach(value -> sorted.add(String.valueOf(value)));
    sorted.sort(null);
    return sorted;
  }

  /** Bytes of which some are 0 and which differ by record. */
  static byte[] filled(int record) {
    byte[] bytes = new byte[HUGE_BYTES];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) (i * 31 + (i >> 10) + record);
    }
    return bytes;
  }
}
