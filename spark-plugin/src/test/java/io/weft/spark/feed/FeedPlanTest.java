package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;

/** The plan for any numbers of rows that map tasks write. */
class FeedPlanTest {
  private record RowId(int map, int partition, int row) {}

  private static FeedSpec spec(
      int ranks, int batchRows, boolean byKey, Long seed, LastBatch lastBatch) {
    return new FeedSpec(
        new StructType().add("x", "int"),
        ranks,
        batchRows,
        byKey,
        seed,
        lastBatch,
        FeedSpec.DumpAt.NEVER);
  }

  /** Row counts of map tasks: chunks dealt evenly in turn, or at random as by keys. */
  private static int[][] written(Random random, int maps, FeedSpec spec) {
    int[][] rows = new int[maps][spec.ranks()];
    for (int map = 0; map < maps; map++) {
      int left = random.nextInt(10 * spec.batchRows());
      for (int turn = map; left > 0; turn++) {
        int taken = Math.min(left, spec.batchRows());
        rows[map][turn % spec.ranks()] += taken;
        left -= taken;
      }
      if (spec.byKey()) {
        Arrays.setAll(rows[map], rank -> random.nextInt(4 * spec.batchRows()));
      }
    }
    return rows;
  }

  private static List<RowId> rows(FeedPlan.Batch batch, FeedSpec spec) {
    List<RowId> rows = new ArrayList<>();
    for (FeedPlan.Piece piece : batch.pieces()) {
      for (int i = 0; i < piece.rows(); i++) {
        int row = piece.chunk() * spec.batchRows() + piece.start() + i;
        rows.add(new RowId(piece.map(), piece.partition(), row));
      }
    }
    return rows;
  }

  @Property(tries = 500)
  void everyRowIsFedAtMostOnceAndAllRanksTakeTheSameSteps(
      @ForAll @IntRange(min = 1, max = 5) int ranks,
      @ForAll @IntRange(min = 1, max = 6) int batchRows,
      @ForAll @IntRange(min = 0, max = 5) int maps,
      @ForAll boolean byKey,
      @ForAll LastBatch lastBatch,
      @ForAll long seed) {
    FeedSpec spec = spec(ranks, batchRows, byKey, seed, lastBatch);
    int[][] written = written(new Random(seed), maps, spec);
    FeedPlan plan = FeedPlan.of(spec, written);
    Set<RowId> fed = new HashSet<>();
    long count = 0;
    for (int rank = 0; rank < ranks; rank++) {
      int owner = rank;
      assertThat(plan.rank(rank)).hasSize(plan.steps());
      for (FeedPlan.Batch batch : plan.rank(rank)) {
        List<RowId> rows = rows(batch, spec);
        count += rows.size();
        fed.addAll(rows);
        assertThat(batch.rows()).isEqualTo(rows.size()).isLessThanOrEqualTo(batchRows);
        if (lastBatch == LastBatch.DROP) {
          assertThat(rows).hasSize(batchRows);
        }
        if (byKey) {
          assertThat(rows).allMatch(row -> row.partition() == owner);
        }
      }
    }
    assertThat(fed).hasSize((int) count);
    fed.forEach(row -> assertThat(row.row()).isLessThan(written[row.map()][row.partition()]));
    assertThat(plan.writtenRows() - plan.droppedRows()).isEqualTo(count);
    if (lastBatch == LastBatch.KEEP) {
      assertThat(plan.droppedRows()).isZero();
    } else if (!byKey) {
      assertThat(plan.droppedRows()).isLessThan((long) ranks * batchRows);
    }
  }

  @Property(tries = 200)
  void evenlyDealtRanksDifferByOneBatchAtMost(
      @ForAll @IntRange(min = 1, max = 5) int ranks,
      @ForAll @IntRange(min = 1, max = 6) int batchRows,
      @ForAll @IntRange(min = 0, max = 5) int maps,
      @ForAll long seed) {
    FeedSpec spec = spec(ranks, batchRows, false, null, LastBatch.KEEP);
    FeedPlan plan = FeedPlan.of(spec, written(new Random(seed), maps, spec));
    long batches = (plan.writtenRows() + batchRows - 1) / batchRows;
    assertThat((long) plan.steps()).isEqualTo((batches + ranks - 1) / ranks);
    for (int rank = 0; rank < ranks; rank++) {
      assertThat(plan.rank(rank).stream().filter(batch -> batch.rows() > 0).count())
          .isBetween((long) plan.steps() - 1, (long) plan.steps());
    }
  }

  /** A map task leaves at most one remainder, which limits the number of copied rows. */
  @Test
  void fullChunksAreReadAsTheyAre() {
    FeedSpec spec = spec(2, 10, false, null, LastBatch.DROP);
    FeedPlan plan = FeedPlan.of(spec, new int[][] {{20, 17}, {10, 13}});
    assertThat(plan.steps()).isEqualTo(3);
    assertThat(plan.rank(0)).allMatch(plan::isChunk);
    assertThat(plan.rank(1)).filteredOn(plan::isChunk).hasSize(2);
    assertThat(plan.rank(1).get(2).pieces())
        .containsExactly(new FeedPlan.Piece(0, 1, 1, 0, 7), new FeedPlan.Piece(1, 1, 1, 0, 3));
  }

  @Test
  void theOrderIsAFunctionOfSeedEpochAndRank() {
    int[][] written = {{200, 200}};
    FeedPlan plan = FeedPlan.of(spec(2, 5, false, 17L, LastBatch.DROP), written);
    FeedPlan same = FeedPlan.of(spec(2, 5, false, 17L, LastBatch.DROP), written);
    FeedPlan other = FeedPlan.of(spec(2, 5, false, 18L, LastBatch.DROP), written);
    List<Integer> sorted = IntStream.range(0, 40).boxed().toList();
    assertThat(plan.order(0, 3)).isEqualTo(same.order(0, 3)).isNotEqualTo(sorted);
    assertThat(plan.order(0, 3)).containsExactlyInAnyOrderElementsOf(sorted);
    assertThat(plan.order(0, 3))
        .isNotEqualTo(plan.order(0, 4))
        .isNotEqualTo(plan.order(1, 3))
        .isNotEqualTo(other.order(0, 3));
    FeedPlan unshuffled = FeedPlan.of(spec(2, 5, false, null, LastBatch.DROP), written);
    assertThat(unshuffled.order(0, 3)).isEqualTo(sorted);
  }

  /** Batches that are not full come last in every epoch. */
  @Test
  void theIncompleteBatchStaysLast() {
    FeedPlan plan =
        FeedPlan.of(spec(1, 4, false, 5L, LastBatch.KEEP), new int[][] {{18}, {3}, {8}});
    assertThat(plan.steps()).isEqualTo(8);
    for (int epoch = 0; epoch < 5; epoch++) {
      List<Integer> order = plan.order(0, epoch);
      assertThat(plan.rank(0).get(order.get(7)).rows()).isEqualTo(1);
    }
  }
}
