package io.weft.examples.ranks;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.Receive;
import io.weft.collectives.Send;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.examples.train.BarrierRanks;
import io.weft.memory.Memory;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.expressions.Window;
import org.apache.spark.sql.functions;

/**
 * A row of cells, each of which becomes the sum of itself and its two neighbours in every step,
 * modulo a prime. Each rank has a strip of the row. Before a step, neighbours exchange the cells at
 * the edges of their strips, the halo.
 *
 * <pre> memory of a rank: left halo | own cells | right halo
 * </pre>
 *
 * @param cells at least as many as ranks
 * @param steps 0 or more
 */
record HaloExchange(int cells, int steps) implements Serializable {
  private static final long PRIME = 1_000_003;
  private static final int FROM_LEFT = 0;
  private static final int FROM_RIGHT = 1;

  /** Runs on that many ranks and returns all cells. */
  long[] run(SparkSession session, int ranks) {
    if (cells < ranks) {
      throw new IllegalArgumentException(cells + " cells for " + ranks + " ranks");
    }
    List<long[]> strips = BarrierRanks.run(session.sparkContext(), ranks, this::strip);
    return strips.stream().flatMapToLong(LongStream::of).toArray();
  }

  private long[] strip(Communicator communicator) {
    try (SymmetricBuffer buffer =
        communicator.symmetric(DataType.INT64, cells / communicator.nranks() + 3L)) {
      Strip strip = new Strip(communicator, buffer, cells);
      for (int step = 1; step <= steps; step++) {
        strip.exchange(step);
        strip.compute();
        strip.awaitReaders();
      }
      return strip.values();
    }
  }

  /** Computes the same by Spark's window functions. */
  long[] bySpark(SparkSession session) {
    Dataset<Row> row = session.range(cells).selectExpr("id", "(id * 7919) % 1009 AS value");
    for (int step = 0; step < steps; step++) {
      Column left = functions.lag("value", 1, 0L).over(Window.orderBy("id"));
      Column right = functions.lead("value", 1, 0L).over(Window.orderBy("id"));
      Column sum = left.plus(functions.col("value")).plus(right).mod(PRIME);
      row = row.select(functions.col("id"), sum.as("value"));
    }
    return row.orderBy("id").collectAsList().stream().mapToLong(each -> each.getLong(1)).toArray();
  }

  /** The cells of one rank. */
  private static final class Strip {
    private final Communicator communicator;
    private final SymmetricBuffer buffer;
    private final int all;
    private final int cells;
    private final int rank;
    private final int last;

    Strip(Communicator communicator, SymmetricBuffer buffer, int all) {
      this.communicator = communicator;
      this.buffer = buffer;
      this.all = all;
      this.rank = communicator.rank();
      this.last = communicator.nranks() - 1;
      long first = first(rank);
      this.cells = (int) (first(rank + 1) - first);
      for (int cell = 0; cell < cells; cell++) {
        put(1 + cell, (first + cell) * 7919 % 1009);
      }
    }

    private long first(int ofRank) {
      return (long) ofRank * all / communicator.nranks();
    }

    private void put(int cell, long value) {
      Memory.putLong(buffer.elements().address() + 8L * cell, value);
    }

    private long get(int cell) {
      return Memory.getLong(buffer.elements().address() + 8L * cell);
    }

    private TypedBuffer cell(int cell) {
      return buffer.elements().slice(cell, 1);
    }

    /** Ranks on one host write into each other's halo; others send and receive. */
    void exchange(int step) {
      if (buffer.whyPrivate().isPresent()) {
        communicator.runGroup(messages());
        return;
      }
      if (rank > 0) {
        buffer.put(cell(1), rank - 1, rightHalo(rank - 1));
        buffer.signal(rank - 1, FROM_RIGHT, step);
      }
      if (rank < last) {
        buffer.put(cell(cells), rank + 1, 0);
        buffer.signal(rank + 1, FROM_LEFT, step);
      }
      if (rank > 0) {
        buffer.await(rank - 1, FROM_LEFT, step);
      }
      if (rank < last) {
        buffer.await(rank + 1, FROM_RIGHT, step);
      }
    }

    /** Strips differ by a cell, and a rank's right halo is behind its cells. */
    private long rightHalo(int ofRank) {
      return 1 + first(ofRank + 1) - first(ofRank);
    }

    private List<Operation> messages() {
      List<Operation> messages = new ArrayList<>();
      if (rank > 0) {
        messages.add(new Send(cell(1), rank - 1));
        messages.add(new Receive(cell(0), rank - 1));
      }
      if (rank < last) {
        messages.add(new Send(cell(cells), rank + 1));
        messages.add(new Receive(cell(cells + 1), rank + 1));
      }
      return messages;
    }

    void compute() {
      long left = get(0);
      for (int cell = 1; cell <= cells; cell++) {
        long own = get(cell);
        put(cell, (left + own + get(cell + 1)) % PRIME);
        left = own;
      }
    }

    /** A neighbour may write the next halo once this rank has read the last one. */
    void awaitReaders() {
      if (rank > 0) {
        buffer.barrier(rank - 1, rank);
      }
      if (rank < last) {
        buffer.barrier(rank, rank + 1);
      }
    }

    long[] values() {
      return IntStream.rangeClosed(1, cells).mapToLong(this::get).toArray();
    }
  }
}
