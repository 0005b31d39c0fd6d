package io.weft.spark.feed;

import io.weft.spark.columns.BatchRows;
import io.weft.spark.compat.ScalaInterop;
import io.weft.spark.feed.FeedPlan.Seeds;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.function.IntConsumer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BoundReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Passes the rows of a map task to the ranks' writer: it checks them and, if requested, shuffles
 * them.
 */
final class FeedRows {
  /** Number of batches in the shuffle buffer. */
  private static final int SHUFFLED_BATCHES = 16;

  private FeedRows() {}

  /**
   * Passes all rows on.
   *
   * @param partition of the input
   * @param dealt receives the rows
   * @return the number of rows
   * @throws IllegalArgumentException if a value does not match its column's type
   */
  static long pass(
      Iterator<InternalRow> rows, FeedSpec spec, int partition, ShuffleBuffer.RowTarget dealt)
      throws IOException {
    TensorCheck check = new TensorCheck(spec.schema(), partition);
    ShuffleBuffer buffer =
        spec.seed().map(seed -> buffer(spec, partition, seed, dealt)).orElse(null);
    ShuffleBuffer.RowTarget target = buffer == null ? dealt : new UnsafeRows(spec, buffer);
    long count = 0;
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      check.next(row);
      target.add(row);
      count++;
    }
    if (buffer != null) {
      buffer.finish();
    }
    return count;
  }

  /**
   * Returns the rows of batches, in their order and {@link #ranked}.
   *
   * @param keys numbers of the key columns
   */
  static Iterator<InternalRow> of(
      Iterator<ColumnarBatch> batches, FeedSpec spec, List<Integer> keys) {
    RankedBatches conversion = new RankedBatches(spec, keys);
    return batches.flatMap(conversion::rows);
  }

  /** Converts batches to rows, {@link #ranked}. For one task thread. */
  static final class RankedBatches {
    private final BatchRows conversion;

    /** Null without keys. */
    private final UnsafeProjection withRank;

    /**
     * Prepares the conversion.
     *
     * @param keys numbers of the key columns
     */
    RankedBatches(FeedSpec spec, List<Integer> keys) {
      this.conversion = new BatchRows(spec.schema());
      this.withRank = spec.byKey() ? projection(spec, spec.schema(), keys) : null;
    }

    /** Returns the rows of a batch. A row is valid until the next one. */
    Iterator<InternalRow> rows(ColumnarBatch batch) {
      Iterator<InternalRow> rows = CollectionConverters.asScala(conversion.of(batch));
      return withRank == null ? rows : rows.map(withRank);
    }
  }

  /**
   * Returns the feed's columns of each row, followed by its rank. A row is valid until the next
   * one.
   *
   * @param given the columns of the rows: the feed's, and possibly more
   * @param keys numbers of the key columns among them
   */
  static Iterator<InternalRow> ranked(
      Iterator<InternalRow> rows, FeedSpec spec, StructType given, List<Integer> keys) {
    return rows.map(projection(spec, given, keys));
  }

  private static UnsafeProjection projection(
      FeedSpec spec, StructType given, List<Integer> keyNumbers) {
    List<Expression> columns = new ArrayList<>();
    for (StructField field : given.fields()) {
      columns.add(new BoundReference(columns.size(), field.dataType(), field.nullable()));
    }
    List<Expression> keys = keyNumbers.stream().map(columns::get).toList();
    List<Expression> results = new ArrayList<>(columns.subList(0, spec.schema().length()));
    results.add(new HashPartitioning(ScalaInterop.seq(keys), spec.ranks()).partitionIdExpression());
    return UnsafeProjection.create(ScalaInterop.seq(results));
  }

  /** Converts rows to UnsafeRows, whose size is known. Most plans already produce them. */
  private static final class UnsafeRows implements ShuffleBuffer.RowTarget {
    private final FeedSpec spec;
    private final ShuffleBuffer buffer;
    private UnsafeProjection projection;

    UnsafeRows(FeedSpec spec, ShuffleBuffer buffer) {
      this.spec = spec;
      this.buffer = buffer;
    }

    @Override
    public void add(InternalRow row) throws IOException {
      buffer.add(row instanceof UnsafeRow unsafe ? unsafe : projected(row));
    }

    private UnsafeRow projected(InternalRow row) {
      if (projection == null) {
        StructType schema = spec.schema();
        projection =
            UnsafeProjection.create(
                spec.byKey()
                    ? schema.add(FeedRequirements.RANK_COLUMN, DataTypes.IntegerType)
                    : schema);
      }
      return projection.apply(row);
    }
  }

  private static ShuffleBuffer buffer(
      FeedSpec spec, int partition, long seed, ShuffleBuffer.RowTarget target) {
    return new ShuffleBuffer(
        mostRows(spec), ShuffleBuffer.MAX_BYTES, Seeds.of(seed, partition), target);
  }

  private static int mostRows(FeedSpec spec) {
    return (int) Math.min((long) SHUFFLED_BATCHES * spec.batchRows(), Integer.MAX_VALUE / 64);
  }

  /**
   * Draws the order in which a {@link ShuffleBuffer} passes on rows of one size, for rows that are
   * on a device. For one task thread.
   */
  static final class ShuffleOrder {
    private final int most;
    private final Random random;
    private final IntConsumer next;
    private int[] kept = new int[ShuffleBuffer.FIRST_PLACES];
    private int count;

    /**
     * Starts empty.
     *
     * @param partition of the input
     * @param rowBytes of an UnsafeRow of the feed, with its rank if there are keys
     * @param next receives the numbers of rows
     */
    ShuffleOrder(FeedSpec spec, int partition, long rowBytes, IntConsumer next) {
      long fitting = ShuffleBuffer.MAX_BYTES / (rowBytes + ShuffleBuffer.ROW_OVERHEAD);
      this.most = (int) Math.min(mostRows(spec), fitting);
      this.random = new Random(Seeds.of(spec.seed().orElseThrow(), partition));
      this.next = next;
    }

    /** Limit of the kept rows. */
    int most() {
      return most;
    }

    /** Takes a row by its number. */
    void add(int row) {
      if (most == 0) {
        next.accept(row);
        return;
      }
      if (count == most) {
        letOneGo();
      }
      if (count == kept.length) {
        kept = Arrays.copyOf(kept, (int) Math.min(most, 2L * count));
      }
      kept[count++] = row;
    }

    /** Passes on the remaining rows. */
    void finish() {
      while (count > 0) {
        letOneGo();
      }
    }

    private void letOneGo() {
      int drawn = random.nextInt(count);
      int row = kept[drawn];
      kept[drawn] = kept[--count];
      next.accept(row);
    }

    /** Returns the kept rows, in the order in which {@link #renumber} numbers them. */
    int[] kept() {
      return Arrays.copyOf(kept, count);
    }

    /** Gives the kept rows new numbers, one after the other. */
    void renumber(int first) {
      for (int i = 0; i < count; i++) {
        kept[i] = first + i;
      }
    }
  }

  /**
   * Passes rows on in a random order. It keeps a limited number of rows and bytes. When a new row
   * does not fit, it passes on rows drawn at random. The order is a function of the seed and the
   * rows, as in TensorFlow's {@code Dataset.shuffle}. For one task thread.
   */
  static final class ShuffleBuffer {
    /** Limit of the kept bytes, independent of the number of rows. */
    static final long MAX_BYTES = 64L << 20;

    /**
     * Approximate memory of a row beside its bytes: the object, the array's header and the index
     * entry.
     */
    static final int ROW_OVERHEAD = 64;

    private static final int FIRST_PLACES = 256;

    private final int mostRows;
    private final long mostBytes;
    private final Random random;
    private final RowTarget next;
    private UnsafeRow[] kept;
    private int count;
    private long bytes;

    /** Receives rows. */
    interface RowTarget {
      void add(InternalRow row) throws IOException;
    }

    /**
     * Starts empty.
     *
     * @param rows kept at most, 1 or more
     * @param mostBytes limit of the memory of these rows, each with {@link #ROW_OVERHEAD} beside
     *     its bytes; a larger row is passed on at once
     */
    ShuffleBuffer(int rows, long mostBytes, long seed, RowTarget next) {
      this.mostRows = rows;
      this.kept = new UnsafeRow[Math.min(rows, FIRST_PLACES)];
      this.mostBytes = mostBytes;
      this.random = new Random(seed);
      this.next = next;
    }

    /** Takes a row; the caller may reuse it afterwards. */
    void add(UnsafeRow row) throws IOException {
      long size = taken(row);
      while (count > 0 && (count == mostRows || bytes + size > mostBytes)) {
        letOneGo();
      }
      if (size > mostBytes) {
        next.add(row);
        return;
      }
      if (count == kept.length) {
        kept = Arrays.copyOf(kept, (int) Math.min(mostRows, 2L * count));
      }
      kept[count++] = row.copy();
      bytes += size;
    }

    private static long taken(UnsafeRow row) {
      return (long) row.getSizeInBytes() + ROW_OVERHEAD;
    }

    /** Passes on the remaining rows. */
    void finish() throws IOException {
      while (count > 0) {
        letOneGo();
      }
    }

    private void letOneGo() throws IOException {
      int drawn = random.nextInt(count);
      UnsafeRow row = kept[drawn];
      count--;
      kept[drawn] = kept[count];
      kept[count] = null;
      bytes -= taken(row);
      next.add(row);
    }

    /** Memory in bytes of the rows that are kept now. */
    long bytes() {
      return bytes;
    }
  }
}
