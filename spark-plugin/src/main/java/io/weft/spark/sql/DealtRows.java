package io.weft.spark.sql;

import io.weft.spark.compat.NarrowRDD;
import io.weft.spark.shuffle.RowTarget;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.stream.IntStream;
import org.apache.spark.TaskContext;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.array.LongArray;
import org.apache.spark.util.MutablePair;
import org.apache.spark.util.random.XORShiftRandom;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The rows of a map task with their partitions, for a repartition without keys. Each partition gets
 * as many rows as any other, or one more. As in Spark's repartition, which sorts rows first, the
 * partition of a row does not depend on the order of rows. So a repeated task over unordered input
 * assigns the same partitions.
 *
 * <p>For one task thread. The first call reads all rows.
 */
final class DealtRows extends AbstractIterator<Product2<Object, InternalRow>> {
  private final Iterator<InternalRow> input;
  private final int partitions;
  private final TaskContext context;
  private final long stage;
  private final Integer[] numbers;
  private final MutablePair<Object, InternalRow> pair = new MutablePair<>();
  private RowBuffer buffer;
  private HashQuantiles quantiles;
  private UnsafeRow row;
  private long left = -1;

  private DealtRows(Iterator<InternalRow> input, int partitions, TaskContext context, long stage) {
    this.input = input;
    this.stage = stage;
    this.partitions = partitions;
    this.context = context;
    this.numbers = IntStream.range(0, partitions).boxed().toArray(Integer[]::new);
  }

  /**
   * Deals the rows of each map partition.
   *
   * @param rows packed rows
   * @param partitions at least 1
   * @param stage see {@link RowTarget.Source#stage}
   * @return rows, each valid until the next one, with their partitions
   */
  static RDD<Product2<Object, InternalRow>> of(RDD<InternalRow> rows, int partitions, long stage) {
    return NarrowRDD.over(
        rows, Product2.class, input -> new DealtRows(input, partitions, TaskContext.get(), stage));
  }

  @Override
  public boolean hasNext() {
    if (left < 0) {
      deal();
    }
    if (left == 0) {
      close();
    }
    return left > 0;
  }

  /** The first partition is the one that Spark chooses. */
  private void deal() {
    buffer = new RowBuffer(context);
    try {
      new BufferTarget().takeAll(input, stage);
      left = buffer.rows();
      if (left > 0) {
        int start = new XORShiftRandom(context.partitionId()).nextInt(partitions) + 1;
        quantiles = new HashQuantiles(buffer, partitions, start);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Rows cannot be read or spilled for a repartition", e);
    }
  }

  /** The buffer as the target of rows. */
  private final class BufferTarget extends RowTarget.OfPacked {
    @Override
    public UnsafeRow write(UnsafeRow packed) throws IOException {
      if (row == null) {
        row = new UnsafeRow(packed.numFields());
      }
      buffer.append(packed);
      return null;
    }
  }

  @Override
  public Product2<Object, InternalRow> next() {
    if (!hasNext()) {
      throw new NoSuchElementException("all rows have been dealt");
    }
    left--;
    try {
      boolean found = buffer.next();
      if (!found) {
        throw new IllegalStateException("rows of a repartition are missing: " + (left + 1));
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Spilled rows of a repartition cannot be read", e);
    }
    buffer.point(row);
    return pair.update(numbers[quantiles.partition(buffer.hash())], row);
  }

  private void close() {
    if (quantiles != null) {
      quantiles.close();
    }
    buffer.close();
  }

  /**
   * Deals the rows of a task evenly to partitions, in any order with the same result. A partition
   * gets the rows between two quantiles of the rows' hashes. Rows with the hash of a quantile are
   * dealt in the order in which they come. They are equal, so their order does not matter: that two
   * different rows of 100 million have the hash of one of 1,000 quantiles has a probability below
   * 10⁻⁸.
   *
   * <p>Hashes are counted by their first bits. All rows of a count are usually in one partition.
   * Only for the other counts are the hashes sorted.
   *
   * <p>For one task thread.
   */
  static final class HashQuantiles implements AutoCloseable {
    /** The hashes of a bucket belong to several partitions. */
    private static final int SPLIT = -1;

    private static final int BUCKET_ROW_BITS = 3;

    /** Limit for few partitions. For many, a sixteenth of the buckets are split. */
    private static final int BUCKET_BITS = 16;

    private static final int SPLIT_BITS = 4;

    private final RowBuffer buffer;
    private final int partitions;
    private final int start;
    private final long rows;
    private final long lowest;
    private final int shift;

    /** The partition of all hashes of a bucket, or {@link #SPLIT}. */
    private final int[] partitionOf;

    /** By hash in split buckets: one more than the rank of the next row with that hash. */
    private LongCounts ranks;

    /**
     * Finds the quantiles.
     *
     * @param buffer with all rows, at least 1
     * @param partitions at least 1
     * @param start the partition of the lowest hash
     * @throws IOException if spilled rows cannot be read
     */
    HashQuantiles(RowBuffer buffer, int partitions, int start) throws IOException {
      this.buffer = buffer;
      this.partitions = partitions;
      this.start = start;
      this.rows = buffer.rows();
      this.lowest = buffer.lowestHash();
      long range = buffer.highestHash() - lowest;
      int limit = Math.max(BUCKET_BITS, bitLength(partitions) + SPLIT_BITS);
      int bits = Math.max(1, Math.min(limit, bitLength(rows) - BUCKET_ROW_BITS));
      this.shift = Math.max(0, bitLength(range) - bits);
      this.partitionOf = new int[(int) (range >>> shift) + 1];
      long[] firstRank = firstRanks();
      boolean split = false;
      for (int bucket = 0; bucket < partitionOf.length; bucket++) {
        partitionOf[bucket] = partitionOf(firstRank[bucket], firstRank[bucket + 1]);
        split |= partitionOf[bucket] == SPLIT;
      }
      if (split) {
        countSplit();
        rankSplit(firstRank);
      }
    }

    private static int bitLength(long unsigned) {
      return Long.SIZE - Long.numberOfLeadingZeros(unsigned);
    }

    /** Returns the number of hashes before each bucket, and the number of all at the end. */
    private long[] firstRanks() throws IOException {
      long[] counts = new long[partitionOf.length + 1];
      buffer.forEachHash(hash -> counts[bucket(hash) + 1]++);
      for (int bucket = 1; bucket < counts.length; bucket++) {
        counts[bucket] += counts[bucket - 1];
      }
      return counts;
    }

    private int bucket(long hash) {
      return (int) ((hash - lowest) >>> shift);
    }

    private int partitionOf(long firstRank, long end) {
      return end <= firstRank + 1 || ofRank(firstRank) == ofRank(end - 1)
          ? ofRank(firstRank)
          : SPLIT;
    }

    /**
     * Counts the rows of each hash of split buckets. Spills rows if there is no memory to count.
     */
    private void countSplit() throws IOException {
      try {
        tryToCountSplit();
      } catch (SparkOutOfMemoryError e) {
        close();
        buffer.spillAll();
        tryToCountSplit();
      }
    }

    private void tryToCountSplit() throws IOException {
      ranks = new LongCounts(buffer);
      buffer.forEachHash(
          hash -> {
            if (partitionOf[bucket(hash)] == SPLIT) {
              ranks.add(hash);
            }
          });
    }

    /** Replaces the counts by ranks. */
    private void rankSplit(long[] firstRank) {
      int bucket = -1;
      long rank = 0;
      for (long hash : ranks.sortedKeys()) {
        if (bucket(hash) != bucket) {
          bucket = bucket(hash);
          rank = firstRank[bucket];
        }
        rank += ranks.replace(hash, rank + 1);
      }
    }

    /** Returns the partition of the next row with a hash. Must be called once for each row. */
    int partition(long hash) {
      int partition = partitionOf[bucket(hash)];
      return partition == SPLIT ? ofRank(ranks.add(hash) - 1) : partition;
    }

    private int ofRank(long rank) {
      return (int) ((start + rank * partitions / rows) % partitions);
    }

    /** Frees the memory for counts. Idempotent. */
    @Override
    public void close() {
      if (ranks != null) {
        ranks.close();
        ranks = null;
      }
    }

    /** Positive numbers by hash, in execution memory of the task. For one thread. */
    static final class LongCounts implements AutoCloseable {
      private static final int FIRST_SLOTS = 1024;

      private final RowBuffer memory;

      /** Key, then number; the number is 0 if the slot is free. */
      private LongArray slots;

      private int mask = FIRST_SLOTS - 1;
      private int size;

      LongCounts(RowBuffer memory) {
        this.memory = memory;
        this.slots = allocate(FIRST_SLOTS);
      }

      private LongArray allocate(int count) {
        LongArray array = memory.allocateArray(2L * count);
        array.zeroOut();
        return array;
      }

      /** Adds 1 to a key's number, at first 0. Returns the number before. */
      long add(long key) {
        int slot = slot(key);
        long before = slots.get(slot + 1);
        slots.set(slot + 1, before + 1);
        if (before == 0) {
          slots.set(slot, key);
          if (++size > mask / 2) {
            grow();
          }
        }
        return before;
      }

      /** Sets the number of a key that has one. Returns the number before. */
      long replace(long key, long number) {
        int slot = slot(key);
        long before = slots.get(slot + 1);
        slots.set(slot + 1, number);
        return before;
      }

      long[] sortedKeys() {
        long[] keys = new long[size];
        int found = 0;
        for (int slot = 0; slot < 2 * mask + 2; slot += 2) {
          if (slots.get(slot + 1) != 0) {
            keys[found++] = slots.get(slot);
          }
        }
        Arrays.sort(keys);
        return keys;
      }

      /** Keys are hashes of a range, so their last bits are the most different. */
      private int slot(long key) {
        int slot = (int) key & mask;
        while (slots.get(2 * slot + 1) != 0 && slots.get(2 * slot) != key) {
          slot = slot + 1 & mask;
        }
        return 2 * slot;
      }

      private void grow() {
        LongArray old = slots;
        LongArray larger = allocate(Math.multiplyExact(mask + 1, 4) / 2);
        mask = 2 * mask + 1;
        slots = larger;
        for (int from = 0; from < old.size(); from += 2) {
          if (old.get(from + 1) != 0) {
            int to = slot(old.get(from));
            slots.set(to, old.get(from));
            slots.set(to + 1, old.get(from + 1));
          }
        }
        memory.freeArray(old);
      }

      @Override
      public void close() {
        memory.freeArray(slots);
      }
    }
  }
}
