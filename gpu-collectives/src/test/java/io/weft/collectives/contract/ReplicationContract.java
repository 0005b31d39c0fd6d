package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;

import io.weft.collectives.Broadcast;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Operations that copy data of ranks to all ranks, for every type, size and number of ranks. */
public interface ReplicationContract extends CommunicatorContract {
  String RANK_COUNTS = "io.weft.collectives.contract.CommunicatorContract#rankCounts";

  /** Zero, one, odd counts, and counts around the limits of tiles and slots. */
  long[] COUNTS = {0, 1, 2, 3, 7, 64, 1023, 4097, 20_011};

  /**
   * Runs the check with every type and count, apart and in place (the longest count both ways), on
   * unaligned buffers.
   */
  default void forAllSizes(int nranks, Case check) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (DataType type : DataType.values()) {
              for (long count : COUNTS) {
                boolean longest = count == COUNTS[COUNTS.length - 1];
                if (!longest || type.code() % 2 == 0) {
                  check.run(communicator, type, count, false);
                }
                if (!longest || type.code() % 2 == 1) {
                  check.run(communicator, type, count, true);
                }
              }
            }
          });
    }
  }

  interface Case {
    void run(Communicator communicator, DataType type, long count, boolean inPlace);
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void broadcast(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          for (int root : new int[] {0, (int) (count % nranks), nranks - 1}) {
            TypedBuffer receive = buffer(type, count);
            TypedBuffer send =
                communicator.rank() != root
                    ? TypedBuffer.empty(type)
                    : inPlace ? receive : filled(communicator, type, count);
            Values.fill(send, root);
            communicator.run(new Broadcast(send, receive, root));
            Values.check("broadcast from " + root, receive, i -> Values.of(root, i));
          }
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void allGather(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          GuardedBuffer guarded = new GuardedBuffer(type, nranks * count, communicator.rank() % 8);
          TypedBuffer receive = guarded.buffer();
          TypedBuffer own = receive.slice(communicator.rank() * count, count);
          TypedBuffer send = inPlace ? own : buffer(type, count);
          Values.fill(send, communicator.rank());
          communicator.allGather(send, receive);
          checkGathered("all-gather on " + communicator, receive, count);
          guarded.check("all-gather on " + communicator);
        });
  }

  /** Checks blocks of this many elements, one rank after the other. */
  static void checkGathered(String what, TypedBuffer receive, long count) {
    Values.check(what, receive, i -> Values.of((int) (i / count), i % count));
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void largeMessages(int nranks) {
    long count = 1_300_003;
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            long part = 2 * count / nranks;
            TypedBuffer all = buffer(DataType.INT16, nranks * part);
            communicator.allGather(filled(communicator, DataType.INT16, part), all);
            checkGathered("large all-gather", all, part);
            TypedBuffer send = filled(communicator, DataType.INT16, count);
            TypedBuffer from = communicator.rank() == 0 ? send : buffer(DataType.INT16, count);
            communicator.broadcast(from, 0);
            Values.check("large broadcast", from, i -> Values.of(0, i));
          });
    }
  }
}
