package io.weft.examples.ranks;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.RaggedExchange;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.BarrierRanks;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.io.Serializable;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.stream.LongStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/**
 * Sorts numbers over ranks. Each rank sorts its own, and all choose the same splitters from a
 * sample. A ragged all-to-all brings each number to the rank of its range, which sorts again.
 *
 * @param rows number of rows, 0 or more
 * @param distinct the values are below this number; few distinct values give uneven ranks
 */
record SampleSort(long rows, long distinct) implements Serializable {
  /** Samples of each rank. */
  private static final int SAMPLES = 64;

  /** Runs on that many ranks and returns all numbers in order. */
  long[] run(SparkSession session, int ranks) {
    List<long[]> parts =
        BarrierRanks.run(
            input(session).repartition(ranks).as(Encoders.LONG()).javaRDD(), SampleSort::sort);
    return parts.stream().flatMapToLong(LongStream::of).toArray();
  }

  private Dataset<Row> input(SparkSession session) {
    return session.range(rows).selectExpr("pmod(xxhash64(id), " + distinct + ") AS value");
  }

  /** Sorts the same numbers by Spark. */
  long[] bySpark(SparkSession session) {
    return input(session).orderBy("value").as(Encoders.LONG()).collectAsList().stream()
        .mapToLong(Long::longValue)
        .toArray();
  }

  private static long[] sort(Communicator communicator, Iterator<Long> rows) {
    LongStream.Builder builder = LongStream.builder();
    rows.forEachRemaining(builder::add);
    long[] own = builder.build().sorted().toArray();
    long[] splitters = splitters(communicator, own);
    long[] sizes = new long[communicator.nranks()];
    int from = 0;
    for (int rank = 0; rank < sizes.length; rank++) {
      int to = rank < splitters.length ? firstFrom(own, splitters[rank]) : own.length;
      sizes[rank] = Math.max(0, to - from);
      from = Math.max(from, to);
    }
    try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1);
        Tensor send = Tensor.allocate(TensorType.of(DataType.INT64, own.length))) {
      write(own, send.buffer());
      long[] sorted = read(exchange.exchange(send.buffer(), sizes));
      Arrays.sort(sorted);
      return sorted;
    }
  }

  /** Returns nranks - 1 numbers in order, the same on all ranks; fewer if there are no rows. */
  private static long[] splitters(Communicator communicator, long[] own) {
    int count = Math.min(SAMPLES, own.length);
    int nranks = communicator.nranks();
    long[] sample = new long[count];
    for (int i = 0; i < count; i++) {
      sample[i] = own[(int) ((i + 0.5) * own.length / count)];
    }
    long[] copies = new long[nranks];
    Arrays.fill(copies, count);
    long[] sent = new long[count * nranks];
    for (int rank = 0; rank < nranks; rank++) {
      System.arraycopy(sample, 0, sent, rank * count, count);
    }
    try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1);
        Tensor send = Tensor.allocate(TensorType.of(DataType.INT64, sent.length))) {
      write(sent, send.buffer());
      long[] all = read(exchange.exchange(send.buffer(), copies));
      Arrays.sort(all);
      int wanted = all.length == 0 ? 0 : nranks - 1;
      return LongStream.rangeClosed(1, wanted)
          .map(i -> all[(int) (i * all.length / nranks)])
          .toArray();
    }
  }

  /** The index of the first number that is not smaller. */
  private static int firstFrom(long[] sorted, long bound) {
    int low = 0;
    int high = sorted.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (sorted[middle] < bound) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  private static void write(long[] values, TypedBuffer buffer) {
    for (int i = 0; i < values.length; i++) {
      Memory.putLong(buffer.address() + 8L * i, values[i]);
    }
  }

  private static long[] read(TypedBuffer buffer) {
    return LongStream.range(0, buffer.count())
        .map(i -> Memory.getLong(buffer.address() + 8 * i))
        .toArray();
  }
}
