package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.TypedBuffer;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests the ragged all-to-all, in which each rank chooses its own layout. */
public interface RaggedContract extends CommunicatorContract {
  /**
   * The number of rows that one rank sends another in one update; some pairs send none, one is
   * skewed.
   */
  interface Sizes {
    long rows(int from, int to, int update);
  }

  Sizes MIXED = (from, to, update) -> (from * 7 + to * 3 + update * 5) % 4 * (from == 1 ? 40 : 1);

  /** A layout that packs everything in order, with gaps of one row in the target. */
  static RaggedLayout layout(int rank, int nranks, int updates, long rowElements, Sizes sizes) {
    int entries = nranks * updates;
    long[] sendOffsets = new long[entries];
    long[] sendSizes = new long[entries];
    long[] targets = new long[entries];
    long[] receives = new long[entries];
    long sent = 0;
    for (int entry = 0; entry < entries; entry++) {
      int peer = entry / updates;
      int update = entry % updates;
      sendOffsets[entry] = sent;
      sendSizes[entry] = sizes.rows(rank, peer, update);
      sent += sendSizes[entry];
      targets[entry] = targetOffset(rank, peer, update, updates, sizes);
      receives[entry] = sizes.rows(peer, rank, update);
    }
    return new RaggedLayout(rowElements, sendOffsets, sendSizes, targets, receives);
  }

  private static long targetOffset(int from, int to, int update, int updates, Sizes sizes) {
    long offset = 1;
    for (int before = 0; before < from * updates + update; before++) {
      offset += sizes.rows(before / updates, to, before % updates) + 1;
    }
    return offset;
  }

  private static long rows(int nranks, int updates, int rank, boolean receive, Sizes sizes) {
    long rows = receive ? 1 : 0;
    for (int entry = 0; entry < nranks * updates; entry++) {
      int peer = entry / updates;
      int update = entry % updates;
      rows += receive ? sizes.rows(peer, rank, update) + 1 : sizes.rows(rank, peer, update);
    }
    return rows;
  }

  /**
   * Runs one exchange on a receive buffer of -1 and checks every row, including rows of no update.
   */
  static void exchange(
      Communicator communicator, DataType type, int updates, long rowElements, Sizes sizes) {
    int nranks = communicator.nranks();
    int rank = communicator.rank();
    RaggedLayout layout = layout(rank, nranks, updates, rowElements, sizes);
    TypedBuffer send = buffer(type, rows(nranks, updates, rank, false, sizes) * rowElements);
    Values.fill(send, rank);
    TypedBuffer receive = buffer(type, rows(nranks, updates, rank, true, sizes) * rowElements);
    Values.fill(receive, i -> -1);
    communicator.raggedAllToAll(send, receive, layout);
    TypedBuffer expected = buffer(type, receive.count());
    Values.fill(expected, i -> -1);
    for (int from = 0; from < nranks; from++) {
      RaggedLayout theirs = layout(from, nranks, updates, rowElements, sizes);
      for (int update = 0; update < updates; update++) {
        int entry = rank * updates + update;
        for (long i = 0; i < theirs.sendSize(entry) * rowElements; i++) {
          Values.put(
              expected,
              theirs.targetOffset(entry) * rowElements + i,
              Values.of(from, theirs.sendOffset(entry) * rowElements + i));
        }
      }
    }
    Values.check("ragged on " + communicator, receive, i -> Values.get(expected, i));
    Values.check("ragged, send", send, i -> Values.of(rank, i));
  }

  @ParameterizedTest
  @MethodSource(CollectivesContract.RANK_COUNTS)
  default void raggedKeepsRowsOfNoUpdate(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (DataType type : DataType.values()) {
              exchange(communicator, type, 1, 1, MIXED);
              exchange(communicator, type, 3, 5, MIXED);
            }
          });
    }
  }

  @ParameterizedTest
  @MethodSource(CollectivesContract.RANK_COUNTS)
  default void raggedWithNothingAndWithSkew(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            exchange(communicator, DataType.INT32, 1, 1, (from, to, update) -> 0);
            exchange(
                communicator,
                DataType.FLOAT32,
                1,
                16,
                (from, to, update) -> to == 0 ? 9_001 + from : from == to ? 1 : 0);
          });
    }
  }

  @Test
  default void raggedBackToBack() {
    try (RankGang gang = gang(3)) {
      gang.run(
          communicator -> {
            for (int round = 0; round < 25; round++) {
              exchange(communicator, DataType.INT64, 2, 1, MIXED);
              int size = round;
              exchange(communicator, DataType.INT8, 1, 3, (from, to, update) -> size);
            }
          });
    }
  }

  /** Rank 1 sends rank 0 more rows than it expects, or beyond the end of its buffer. */
  @ParameterizedTest
  @ValueSource(strings = {"size", "target"})
  default void raggedOverflowIsNamed(String what) {
    try (RankGang gang = gang(2)) {
      List<CollectiveException> failures =
          gang.ask(
              communicator ->
                  catchThrowableOfType(
                      CollectiveException.class, () -> overflow(communicator, what)));
      assertThat(failures).doesNotContainNull();
      assertThat(failures)
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(CollectiveException.Kind.MISMATCH);
                assertThat(failure.ranks()).containsExactly(0, 1);
                assertThat(failure)
                    .hasMessageContaining("of rank 1")
                    .hasMessageContaining("rank 0");
              });
    }
  }

  private static void overflow(Communicator communicator, String what) {
    boolean sender = communicator.rank() == 1;
    boolean size = what.equals("size");
    long[] ones = {2, 2};
    long[] sendSizes = sender && size ? new long[] {3, 2} : ones;
    long[] targets =
        sender && !size
            ? new long[] {5, 2}
            : new long[] {2L * communicator.rank(), 2L * communicator.rank()};
    RaggedLayout layout = new RaggedLayout(1, new long[] {0, 0}, sendSizes, targets, ones);
    communicator.raggedAllToAll(buffer(DataType.INT32, 4), buffer(DataType.INT32, 6), layout);
  }

  @Test
  default void raggedArgumentsAreChecked() {
    try (RankGang gang = gang(1)) {
      TypedBuffer send = buffer(DataType.INT32, 4);
      TypedBuffer receive = buffer(DataType.INT32, 4);
      assertInvalid(gang, send, receive, layout(-1, 1, 0, 1), "negative");
      assertInvalid(gang, send, receive, layout(0, 5, 0, 5), "reads rows 0 to 5");
      assertInvalid(gang, send, receive, layout(0, 4, 0, 5), "receive sizes");
      assertInvalid(gang, send, receive, layout(Long.MAX_VALUE, 4, 0, 4), "reads rows");
      assertInvalid(gang, send, send, layout(0, 4, 0, 4), "overlap");
      gang.rank(0).raggedAllToAll(send, receive, layout(0, 4, 0, 4));
    }
  }

  private static RaggedLayout layout(long offset, long size, long target, long receive) {
    return new RaggedLayout(
        1, new long[] {offset}, new long[] {size}, new long[] {target}, new long[] {receive});
  }

  private static void assertInvalid(
      RankGang gang, TypedBuffer send, TypedBuffer receive, RaggedLayout layout, String message) {
    CollectiveException failure =
        catchThrowableOfType(
            CollectiveException.class, () -> gang.rank(0).raggedAllToAll(send, receive, layout));
    assertThat(failure).hasMessageContaining(message);
    assertThat(failure.kind()).isEqualTo(CollectiveException.Kind.INVALID);
  }
}
