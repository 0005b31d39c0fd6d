package io.weft.spark.feed;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Decides which rank reads which batch. The plan is a function of the row counts that the map tasks
 * wrote, so all ranks compute the same plan without communication. Immutable.
 *
 * <p>A map task writes chunks of exactly a batch's rows. The last chunk of a partition may be
 * shorter: a remainder. Full chunks are batches as they are. Remainders are combined into batches
 * in the order of (map task, partition).
 *
 * <p>With keys, a rank has the batches of its own partition. Without keys, the numbers of batches
 * per rank differ by at most one: a rank first gets those of its own partition, then the surplus of
 * others, then those made of remainders.
 */
final class FeedPlan {
  private final FeedSpec spec;
  private final int[][] rows;
  private final List<List<Batch>> ranks;
  private final int steps;

  /** Adjacent rows of a chunk. */
  record Piece(int map, int partition, int chunk, int start, int rows) {}

  /** The pieces of a batch; empty for a batch without rows. */
  record Batch(List<Piece> pieces) {
    static final Batch EMPTY = new Batch(List.of());

    int rows() {
      return pieces.stream().mapToInt(Piece::rows).sum();
    }
  }

  private FeedPlan(FeedSpec spec, int[][] rows, List<List<Batch>> dealt, int steps) {
    this.spec = spec;
    this.rows = rows;
    this.steps = steps;
    this.ranks = dealt.stream().map(batches -> ofLength(batches, steps)).toList();
  }

  /**
   * Plans the batches of all ranks.
   *
   * @param rows by map task and partition; there are as many partitions as ranks
   */
  static FeedPlan of(FeedSpec spec, int[][] rows) {
    List<List<Batch>> own =
        IntStream.range(0, spec.ranks()).mapToObj(rank -> fullChunks(spec, rows, rank)).toList();
    return spec.byKey() ? byKey(spec, rows, own) : evenly(spec, rows, own);
  }

  private static FeedPlan byKey(FeedSpec spec, int[][] rows, List<List<Batch>> own) {
    boolean keep = spec.lastBatch() == LastBatch.KEEP;
    for (int rank = 0; rank < spec.ranks(); rank++) {
      own.get(rank).addAll(cut(spec, remainders(spec, rows, rank, rank + 1)));
    }
    IntStream sizes = own.stream().mapToInt(List::size);
    int steps = (keep ? sizes.max() : sizes.min()).orElseThrow();
    return new FeedPlan(spec, rows, own, steps);
  }

  private static FeedPlan evenly(FeedSpec spec, int[][] rows, List<List<Batch>> own) {
    List<Batch> made = cut(spec, remainders(spec, rows, 0, spec.ranks()));
    int batches = own.stream().mapToInt(List::size).sum() + made.size();
    int least = batches / spec.ranks();
    // With KEEP, this number of ranks have one batch more than the others.
    int more = spec.lastBatch() == LastBatch.KEEP ? batches % spec.ranks() : 0;
    List<Batch> pool = new ArrayList<>();
    for (int rank = 0; rank < spec.ranks(); rank++) {
      List<Batch> surplus = surplus(own.get(rank), least + (rank < more ? 1 : 0));
      pool.addAll(surplus);
      surplus.clear();
    }
    pool.addAll(made);
    int next = 0;
    for (int rank = 0; rank < spec.ranks(); rank++) {
      int wanted = least + (rank < more ? 1 : 0) - own.get(rank).size();
      own.get(rank).addAll(pool.subList(next, next + wanted));
      next += wanted;
    }
    moveLast(own);
    return new FeedPlan(spec, rows, own, least + (more > 0 ? 1 : 0));
  }

  private static List<Batch> surplus(List<Batch> own, int wanted) {
    return own.subList(Math.min(own.size(), wanted), own.size());
  }

  /** Moves the batch that is not full, if there is one, to the last step of its rank. */
  private static void moveLast(List<List<Batch>> dealt) {
    for (List<Batch> batches : dealt) {
      batches.sort(Comparator.comparingInt(Batch::rows).reversed());
    }
  }

  private static List<Batch> ofLength(List<Batch> batches, int steps) {
    List<Batch> cut = new ArrayList<>(batches.subList(0, Math.min(steps, batches.size())));
    cut.addAll(Collections.nCopies(steps - cut.size(), Batch.EMPTY));
    return List.copyOf(cut);
  }

  private static List<Batch> fullChunks(FeedSpec spec, int[][] rows, int partition) {
    List<Batch> full = new ArrayList<>();
    for (int map = 0; map < rows.length; map++) {
      for (int chunk = 0; chunk < rows[map][partition] / spec.batchRows(); chunk++) {
        full.add(new Batch(List.of(new Piece(map, partition, chunk, 0, spec.batchRows()))));
      }
    }
    return full;
  }

  private static List<Piece> remainders(FeedSpec spec, int[][] rows, int from, int to) {
    List<Piece> pieces = new ArrayList<>();
    for (int map = 0; map < rows.length; map++) {
      for (int partition = from; partition < to; partition++) {
        int left = rows[map][partition] % spec.batchRows();
        if (left > 0) {
          int chunk = rows[map][partition] / spec.batchRows();
          pieces.add(new Piece(map, partition, chunk, 0, left));
        }
      }
    }
    return pieces;
  }

  /** Cuts remainders into batches; with KEEP the last one may not be full. */
  private static List<Batch> cut(FeedSpec spec, List<Piece> pieces) {
    List<Batch> batches = new ArrayList<>();
    List<Piece> open = new ArrayList<>();
    int missing = spec.batchRows();
    for (Piece piece : pieces) {
      int start = 0;
      while (start < piece.rows()) {
        int taken = Math.min(missing, piece.rows() - start);
        open.add(new Piece(piece.map(), piece.partition(), piece.chunk(), start, taken));
        start += taken;
        missing -= taken;
        if (missing == 0) {
          batches.add(new Batch(List.copyOf(open)));
          open.clear();
          missing = spec.batchRows();
        }
      }
    }
    if (!open.isEmpty() && spec.lastBatch() == LastBatch.KEEP) {
      batches.add(new Batch(List.copyOf(open)));
    }
    return batches;
  }

  /** Number of batches of every rank. */
  int steps() {
    return steps;
  }

  /** Returns a rank's batches, one per step; those without rows come last. */
  List<Batch> rank(int rank) {
    return ranks.get(rank);
  }

  /** Number of map tasks. */
  int maps() {
    return rows.length;
  }

  /** Number of rows that a map task wrote to a partition. */
  int rows(int map, int partition) {
    return rows[map][partition];
  }

  /**
   * Number of rows that a map task wrote to one chunk of a partition; 0 if there is no such chunk.
   */
  int chunkRows(int map, int partition, int chunk) {
    long left = rows[map][partition] - (long) chunk * spec.batchRows();
    return (int) Math.max(0, Math.min(left, spec.batchRows()));
  }

  /** Returns whether a batch is exactly one written chunk. */
  boolean isChunk(Batch batch) {
    if (batch.pieces().size() != 1) {
      return false;
    }
    Piece piece = batch.pieces().get(0);
    return piece.rows() == chunkRows(piece.map(), piece.partition(), piece.chunk());
  }

  /** Number of rows that were written. */
  long writtenRows() {
    return Arrays.stream(rows).flatMapToInt(Arrays::stream).asLongStream().sum();
  }

  /** Number of rows that no rank is fed. */
  long droppedRows() {
    return writtenRows() - ranks.stream().flatMap(List::stream).mapToLong(Batch::rows).sum();
  }

  /**
   * The order of a rank's batches in an epoch. With a seed, full batches come in an order drawn
   * from (seed, epoch, rank), then those that are not full.
   *
   * @return indexes into {@link #rank(int)}
   */
  List<Integer> order(int rank, int epoch) {
    List<Integer> order = new ArrayList<>(IntStream.range(0, steps).boxed().toList());
    if (spec.seed().isPresent()) {
      long full = ranks.get(rank).stream().filter(b -> b.rows() == spec.batchRows()).count();
      Random random = new Random(Seeds.of(spec.seed().get(), epoch, rank));
      Collections.shuffle(order.subList(0, (int) full), random);
    }
    return order;
  }

  /** Combines several numbers into a seed with the finalizer of SplitMix64. */
  static final class Seeds {
    private static final long GOLDEN_GAMMA = 0x9E3779B97F4A7C15L;

    private Seeds() {}

    static long of(long seed, long... parts) {
      long mixed = mix(seed);
      for (long part : parts) {
        mixed = mix(mixed + GOLDEN_GAMMA * (part + 1));
      }
      return mixed;
    }

    private static long mix(long value) {
      long z = (value ^ (value >>> 30)) * 0xBF58476D1CE4E5B9L;
      z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
      return z ^ (z >>> 31);
    }
  }

  /**
   * Compares the data that a rank finds with the plan. If a map task is run again over input whose
   * order changes, it may write other row counts than its first attempt, on which the plan is
   * based. Holds no state except the plan.
   */
  static final class PlanCheck {
    private final FeedPlan plan;

    PlanCheck(FeedPlan plan) {
      this.plan = plan;
    }

    /**
     * Checks which map tasks wrote to a partition. A partition that was planned to be empty is
     * never read, so only this check detects unexpected rows in it.
     *
     * @param maps that wrote to it, according to Spark's map statuses
     * @throws IllegalStateException if they differ from the plan
     */
    void wroteTo(int partition, Set<Integer> maps) {
      for (int map = 0; map < plan.maps(); map++) {
        int planned = plan.rows(map, partition);
        boolean wrote = maps.contains(map);
        if (wrote != planned > 0) {
          throw other(map, wrote ? "rows" : rows(0), rows(planned), "rank " + partition);
        }
      }
    }

    /**
     * Checks a chunk, even one that the rank does not read.
     *
     * @throws IllegalStateException if it does not have the planned rows
     */
    void chunk(int map, int partition, int chunk, int found) {
      int planned = plan.chunkRows(map, partition, chunk);
      if (found != planned) {
        throw other(map, rows(found), rows(planned), name(partition, chunk));
      }
    }

    /**
     * Checks that a map task's partition has no further chunks.
     *
     * @throws IllegalStateException if more were planned
     */
    void end(int map, int partition, int chunks) {
      chunk(map, partition, chunks, 0);
    }

    /**
     * Checks the number of rows of a partition.
     *
     * @throws IllegalStateException if it differs from the plan
     */
    void partition(int map, int partition, int found) {
      int planned = plan.rows(map, partition);
      if (found != planned) {
        throw other(map, rows(found), rows(planned), "rank " + partition);
      }
    }

    private static String name(int partition, int chunk) {
      return "chunk " + chunk + " of rank " + partition;
    }

    private static String rows(int count) {
      return count == 0 ? "nothing" : count == 1 ? "1 row" : count + " rows";
    }

    private static IllegalStateException other(
        int map, String found, String planned, String where) {
      return new IllegalStateException(
          ("map task %d wrote %s instead of %s to %s when it was run again:"
                  + " the data of a feed must not depend on the order of unordered input")
              .formatted(map, found, planned, where));
    }
  }
}
