package io.weft.collectives.symmetric;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.OperationKind;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.host.HostOptions.BufferSizes;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Collectives on windows compute the same as the plain reference, for all places of the buffers: in
 * the window, outside it, unaligned, in place, and different on each rank. Slots are small, so few
 * operations need only one slot.
 */
class InPlaceCollectivesTest {
  private static final List<OperationKind> KINDS =
      List.of(
          OperationKind.ALL_REDUCE,
          OperationKind.REDUCE,
          OperationKind.BROADCAST,
          OperationKind.ALL_GATHER,
          OperationKind.REDUCE_SCATTER,
          OperationKind.ALL_TO_ALL,
          OperationKind.GATHER,
          OperationKind.SCATTER);
  private static final long HALF = 128 << 10;

  @TempDir Path folder;

  /** The place of a rank's buffers. */
  private enum Place {
    WINDOW,
    SEND_ONLY,
    RECEIVE_ONLY,
    PRIVATE
  }

  /** One operation, without its buffers. */
  private record Plan(OperationKind kind, DataType type, ReduceOp op, int root, long count) {
    long sendCount(int nranks) {
      return switch (kind) {
        case REDUCE_SCATTER, ALL_TO_ALL, SCATTER -> count * nranks;
        default -> count;
      };
    }

    long receiveCount(int nranks) {
      return switch (kind) {
        case ALL_GATHER, ALL_TO_ALL, GATHER -> count * nranks;
        default -> count;
      };
    }

    Operation on(TypedBuffer send, TypedBuffer receive) {
      return switch (kind) {
        case ALL_REDUCE -> new AllReduce(send, receive, op);
        case REDUCE -> new Reduce(send, receive, op, root);
        case BROADCAST -> new Broadcast(send, receive, root);
        case ALL_GATHER -> new AllGather(send, receive);
        case REDUCE_SCATTER -> new ReduceScatter(send, receive, op);
        case ALL_TO_ALL -> new AllToAll(send, receive);
        case GATHER -> new Gather(send, receive, root);
        default -> new Scatter(send, receive, root);
      };
    }

    /** Whether the operation writes the receive buffer of a rank. */
    boolean isReceiver(int rank) {
      return (kind != OperationKind.REDUCE && kind != OperationKind.GATHER) || rank == root;
    }
  }

  private RankGang host(int nranks) {
    return Gangs.of(
        new HostCommunicators(
            HostOptions.defaults()
                .withFolder(folder.resolve("host"))
                .withSizes(new BufferSizes(128, 1024, 1024))),
        nranks);
  }

  /** Runs on one rank with its window. */
  private interface Use {
    void run(Communicator communicator, Window window);
  }

  private void onWindows(RankGang gang, Use use) {
    gang.run(
        communicator -> {
          SymmetricOptions options = SymmetricOptions.in(folder.resolve("symmetric"));
          try (SymmetricArena arena =
                  SymmetricArena.open(communicator, options.withSegmentBytes(1 << 20));
              Window window = arena.window(2 * HALF)) {
            use.run(communicator, window);
            communicator.barrier();
          }
        });
  }

  private static TypedBuffer buffer(DataType type, long count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(Math.toIntExact(count * type.bytes())), type);
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3, 5})
  void windowsComputeTheSameAsTheReference(int nranks) {
    try (RankGang host = host(nranks);
        RankGang reference = Gangs.local(nranks)) {
      onWindows(
          host,
          (communicator, window) -> {
            for (OperationKind kind : KINDS) {
              for (DataType type : DataType.values()) {
                for (long count : new long[] {1, 17, 500, 2001}) {
                  ReduceOp op = ReduceOp.values()[(int) (count + type.code()) % 5];
                  Plan plan = new Plan(kind, type, op, (int) count % nranks, count);
                  compare(plan, Place.WINDOW, 3, window, communicator, reference);
                }
              }
            }
            assertThat(communicator.metrics().total(Algorithm.IN_PLACE).calls()).isGreaterThan(100);
          });
    }
  }

  /** All ranks must choose the same way, even if only some have reachable buffers. */
  @ParameterizedTest
  @CsvSource({"2, 0", "3, 1", "3, 2", "4, 3", "4, 5"})
  void buffersInDifferentPlacesOnDifferentRanksAgree(int nranks, int turn) {
    try (RankGang host = host(nranks);
        RankGang reference = Gangs.local(nranks)) {
      onWindows(
          host,
          (communicator, window) -> {
            for (OperationKind kind : KINDS) {
              for (int mixture = 0; mixture < 16; mixture++) {
                int choice = (mixture >> 2 * (communicator.rank() % 2)) + turn;
                Place place = Place.values()[choice & 3];
                Plan plan = new Plan(kind, DataType.FLOAT32, ReduceOp.SUM, 1, 700 + mixture);
                compare(plan, place, 0, window, communicator, reference);
              }
            }
          });
    }
  }

  private static void compare(
      Plan plan, Place place, long shift, Window window, Communicator host, RankGang reference) {
    int rank = host.rank();
    int nranks = host.nranks();
    DataType type = plan.type();
    boolean sendInside = place == Place.WINDOW || place == Place.SEND_ONLY;
    boolean receiveInside = place == Place.WINDOW || place == Place.RECEIVE_ONLY;
    TypedBuffer send =
        sendInside
            ? window.buffer(shift, type, plan.sendCount(nranks))
            : buffer(type, plan.sendCount(nranks));
    TypedBuffer receive =
        receiveInside
            ? window.buffer(HALF + shift, type, plan.receiveCount(nranks))
            : buffer(type, plan.receiveCount(nranks));
    TypedBuffer expected = buffer(type, plan.receiveCount(nranks));
    TypedBuffer plain = buffer(type, plan.sendCount(nranks));
    Values.fill(send, rank);
    Values.fill(plain, rank);
    Values.fill(receive, index -> 9);
    Values.fill(expected, index -> 9);
    host.run(plan.on(send, receive));
    reference.rank(rank).run(plan.on(plain, expected));
    if (plan.isReceiver(rank)) {
      Values.check(plan + " " + place, receive, index -> Values.get(expected, index));
    }
    Values.check(plan + " " + place + ", sent", send, index -> Values.of(rank, index));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void sameBufferForBothIsReducedInPlace(int nranks) {
    try (RankGang host = host(nranks)) {
      onWindows(
          host,
          (communicator, window) -> {
            for (DataType type : DataType.values()) {
              for (ReduceOp op : ReduceOp.values()) {
                TypedBuffer data = window.buffer(5, type, 3001);
                Values.fill(data, communicator.rank());
                communicator.allReduce(data, op);
                Values.check(
                    type + " " + op, data, index -> Values.reduced(type, op, nranks, index));
              }
            }
            TypedBuffer all = window.buffer(0, DataType.INT32, 1000L * nranks);
            TypedBuffer own = all.slice(1000L * communicator.rank(), 1000);
            Values.fill(own, communicator.rank());
            communicator.allGather(own, all);
            Values.check("gathered", all, index -> Values.of((int) (index / 1000), index % 1000));
          });
    }
  }

  /** Trap: rows that no update covers are set to zero, or lost with a scratch buffer. */
  @ParameterizedTest
  @CsvSource({"2, 0", "3, 9", "5, 25"})
  void raggedRowsGoStraightToTheirPlaceAndOthersKeepTheirContents(int nranks, int inPlace) {
    try (RankGang host = host(nranks)) {
      onWindows(
          host,
          (communicator, window) -> {
            int rank = communicator.rank();
            for (int round = 0; round < 25; round++) {
              int rows = 1 + round % 7;
              int offset = 500 * (round % 2);
              long[] sizes = new long[nranks];
              long[] sources = new long[nranks];
              long[] targets = new long[nranks];
              for (int peer = 0; peer < nranks; peer++) {
                sizes[peer] = (rank + peer) % 3 == 0 ? 0 : rows;
                sources[peer] = 20L * peer;
                targets[peer] = offset + 10L * rank;
              }
              TypedBuffer send = window.buffer(0, DataType.INT32, 20L * nranks);
              TypedBuffer receive = window.buffer(HALF, DataType.INT32, 1000);
              int now = round;
              Values.fill(send, index -> 1000 * now + 100 * rank + index);
              Values.fill(receive, index -> -1);
              RaggedLayout layout = new RaggedLayout(1, sources, sizes, targets, sizes);
              communicator.run(new RaggedAllToAll(send, receive, layout));
              Values.check(
                  "round " + round,
                  receive,
                  index -> {
                    long from = (index - offset) / 10;
                    long row = (index - offset) % 10;
                    boolean covered =
                        index >= offset && from < nranks && row < rows && (from + rank) % 3 != 0;
                    return covered ? 1000 * now + 100 * from + 20 * rank + row : -1;
                  });
              communicator.barrier();
            }
            // A slot has room for the tables and 20 rows of 2 ranks, or the tables and 8 rows of 3.
            // It has no room for the tables of 5 ranks.
            assertThat(communicator.metrics().total(Algorithm.IN_PLACE).calls()).isEqualTo(inPlace);
          });
    }
  }
}
