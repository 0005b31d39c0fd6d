package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;

import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Gather;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Scatter;
import io.weft.collectives.TypedBuffer;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Runs every collective on buffers that are longer than all slots, stages, rings and pieces of an
 * implementation, apart and in place.
 */
public interface HugeContract extends CommunicatorContract {
  /** More than 5 MB of 64-bit elements, not a multiple of anything. */
  long WHOLE = 700_001;

  /** The elements of one part, for operations with a part for every rank. */
  long PART = 300_007;

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  default void hugeReductions(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (boolean inPlace : new boolean[] {false, true}) {
              allReduce(communicator, inPlace);
              reduce(communicator, nranks - 1, inPlace);
              reduceScatter(communicator, inPlace);
            }
          });
    }
  }

  private static double sum(int nranks, long index) {
    return Values.reduced(DataType.FLOAT64, ReduceOp.SUM, nranks, index);
  }

  private static void allReduce(Communicator communicator, boolean inPlace) {
    TypedBuffer send = filled(communicator, DataType.FLOAT64, WHOLE);
    TypedBuffer receive = inPlace ? send : buffer(DataType.FLOAT64, WHOLE);
    communicator.allReduce(send, receive, ReduceOp.SUM);
    Values.check("huge all-reduce", receive, i -> sum(communicator.nranks(), i));
  }

  private static void reduce(Communicator communicator, int root, boolean inPlace) {
    TypedBuffer send = filled(communicator, DataType.FLOAT64, WHOLE);
    TypedBuffer receive = inPlace ? send : buffer(DataType.FLOAT64, WHOLE);
    communicator.reduce(send, receive, ReduceOp.SUM, root);
    if (communicator.rank() == root) {
      Values.check("huge reduce", receive, i -> sum(communicator.nranks(), i));
    } else {
      Values.check("huge reduce, sent", send, i -> Values.of(communicator.rank(), i));
    }
  }

  private static void reduceScatter(Communicator communicator, boolean inPlace) {
    long first = communicator.rank() * PART;
    TypedBuffer send = filled(communicator, DataType.FLOAT64, communicator.nranks() * PART);
    TypedBuffer receive = inPlace ? send.slice(first, PART) : buffer(DataType.FLOAT64, PART);
    communicator.reduceScatter(send, receive, ReduceOp.SUM);
    Values.check("huge reduce-scatter", receive, i -> sum(communicator.nranks(), first + i));
  }

  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  default void hugeMoves(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (boolean inPlace : new boolean[] {false, true}) {
              broadcast(communicator, nranks - 1, inPlace);
              allGather(communicator, inPlace);
              gather(communicator, nranks - 1, inPlace);
              scatter(communicator, nranks - 1, inPlace);
              allToAll(communicator, inPlace);
            }
          });
    }
  }

  private static void broadcast(Communicator communicator, int root, boolean inPlace) {
    TypedBuffer receive = buffer(DataType.INT64, WHOLE);
    TypedBuffer send = TypedBuffer.empty(DataType.INT64);
    if (communicator.rank() == root) {
      send = inPlace ? receive : filled(communicator, DataType.INT64, WHOLE);
      Values.fill(send, root);
    }
    communicator.run(new Broadcast(send, receive, root));
    Values.check("huge broadcast", receive, i -> Values.of(root, i));
  }

  private static void allGather(Communicator communicator, boolean inPlace) {
    TypedBuffer receive = buffer(DataType.INT64, communicator.nranks() * PART);
    TypedBuffer own = receive.slice(communicator.rank() * PART, PART);
    TypedBuffer send = inPlace ? own : buffer(DataType.INT64, PART);
    Values.fill(send, communicator.rank());
    communicator.allGather(send, receive);
    Values.check("huge all-gather", receive, i -> Values.of((int) (i / PART), i % PART));
  }

  private static void gather(Communicator communicator, int root, boolean inPlace) {
    boolean isRoot = communicator.rank() == root;
    TypedBuffer receive =
        isRoot
            ? buffer(DataType.INT64, communicator.nranks() * PART)
            : TypedBuffer.empty(DataType.INT64);
    TypedBuffer send =
        isRoot && inPlace ? receive.slice(root * PART, PART) : buffer(DataType.INT64, PART);
    Values.fill(send, communicator.rank());
    communicator.run(new Gather(send, receive, root));
    Values.check("huge gather", receive, i -> Values.of((int) (i / PART), i % PART));
  }

  private static void scatter(Communicator communicator, int root, boolean inPlace) {
    boolean isRoot = communicator.rank() == root;
    TypedBuffer send =
        isRoot
            ? filled(communicator, DataType.INT64, communicator.nranks() * PART)
            : TypedBuffer.empty(DataType.INT64);
    TypedBuffer receive =
        isRoot && inPlace ? send.slice(root * PART, PART) : buffer(DataType.INT64, PART);
    communicator.run(new Scatter(send, receive, root));
    long first = communicator.rank() * PART;
    Values.check("huge scatter", receive, i -> Values.of(root, first + i));
  }

  private static void allToAll(Communicator communicator, boolean inPlace) {
    long count = communicator.nranks() * PART;
    TypedBuffer send = filled(communicator, DataType.INT64, count);
    TypedBuffer receive = inPlace ? send : buffer(DataType.INT64, count);
    communicator.run(new AllToAll(send, receive));
    long first = communicator.rank() * PART;
    Values.check("huge all-to-all", receive, i -> Values.of((int) (i / PART), first + i % PART));
  }
}
