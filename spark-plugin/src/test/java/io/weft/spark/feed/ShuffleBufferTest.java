package io.weft.spark.feed;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.spark.feed.FeedRows.ShuffleBuffer;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/** Each row leaves the buffer once, in an order that the seed determines. */
class ShuffleBufferTest {
  private static List<Integer> shuffled(int kept, int rows, long seed) throws IOException {
    List<Integer> order = new ArrayList<>();
    ShuffleBuffer buffer = new ShuffleBuffer(kept, 1 << 20, seed, row -> order.add(row.getInt(0)));
    UnsafeRow row = UnsafeRow.createFromByteArray(16, 1);
    for (int i = 0; i < rows; i++) {
      row.setInt(0, i); // One row object for all rows, as Spark's operators do.
      buffer.add(row);
    }
    buffer.finish();
    return order;
  }

  @Property(tries = 200)
  void everyRowLeavesOnce(
      @ForAll @IntRange(min = 1, max = 50) int kept,
      @ForAll @IntRange(max = 200) int rows,
      @ForAll long seed)
      throws IOException {
    List<Integer> order = shuffled(kept, rows, seed);
    assertThat(order)
        .containsExactlyInAnyOrderElementsOf(IntStream.range(0, rows).boxed().toList())
        .isEqualTo(shuffled(kept, rows, seed));
    // A row cannot leave before this number of others has arrived.
    for (int position = 0; position < rows; position++) {
      assertThat(order.get(position)).isLessThanOrEqualTo(position + kept);
    }
  }

  /**
   * Small rows fill the buffer, and large rows arrive when it is full, as with lists of any length.
   */
  @Property(tries = 200)
  void neverMoreBytesThanAllowedAreKept(
      @ForAll @IntRange(min = 1, max = 50) int kept,
      @ForAll @Size(max = 100) List<@IntRange(min = 1, max = 40) Integer> words,
      @ForAll long seed)
      throws IOException {
    int most = 8 * 30 + 3 * ShuffleBuffer.ROW_OVERHEAD;
    List<Integer> order = new ArrayList<>();
    ShuffleBuffer buffer = new ShuffleBuffer(kept, most, seed, row -> order.add(row.getInt(0)));
    long in = 0;
    for (int i = 0; i < words.size(); i++) {
      UnsafeRow row = UnsafeRow.createFromByteArray(8 + 8 * words.get(i), 1);
      row.setInt(0, i);
      buffer.add(row);
      in += taken(words.get(i));
      long out = order.stream().mapToLong(gone -> taken(words.get(gone))).sum();
      assertThat(in - out).as("bytes kept").isLessThanOrEqualTo(most).isEqualTo(buffer.bytes());
    }
    buffer.finish();
    assertThat(order)
        .containsExactlyInAnyOrderElementsOf(IntStream.range(0, words.size()).boxed().toList());
    assertThat(buffer.bytes()).isZero();
  }

  private static long taken(int words) {
    return 8 + 8L * words + ShuffleBuffer.ROW_OVERHEAD;
  }

  /** A row of 16 bytes takes five times as much memory: a million of them are not 16 MB. */
  @Example
  void smallRowsFillTheBufferByWhatTheyTakeInMemory() throws IOException {
    List<Integer> gone = new ArrayList<>();
    ShuffleBuffer buffer = new ShuffleBuffer(1 << 20, 1 << 20, 5, row -> gone.add(row.getInt(0)));
    UnsafeRow row = UnsafeRow.createFromByteArray(16, 1);
    for (int i = 0; i < 20_000; i++) {
      row.setInt(0, i);
      buffer.add(row);
    }
    int kept = (1 << 20) / (16 + ShuffleBuffer.ROW_OVERHEAD);
    assertThat(gone).hasSize(20_000 - kept);
  }

  @Property(tries = 20)
  void anotherSeedGivesAnotherOrder(@ForAll long seed) throws IOException {
    assertThat(shuffled(100, 500, seed)).isNotEqualTo(shuffled(100, 500, seed + 1));
  }
}
