package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;

import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Receive;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.Send;
import io.weft.collectives.TypedBuffer;
import java.util.List;
import java.util.Random;

/** Runs one random operation and checks its result. */
public final class RandomStep {
  private RandomStep() {}

  /** The random numbers must be the same on all ranks. */
  public static void run(Communicator communicator, Random random, String what) {
    int nranks = communicator.nranks();
    int rank = communicator.rank();
    DataType type = DataType.values()[random.nextInt(8)];
    ReduceOp op = ReduceOp.values()[random.nextInt(5)];
    long count = random.nextInt(10) == 0 ? random.nextInt(200_000) : random.nextInt(2000);
    int root = random.nextInt(nranks);
    switch (random.nextInt(12)) {
      case 0 -> {
        TypedBuffer data = filled(communicator, type, count);
        communicator.allReduce(data, op);
        Values.check(what, data, i -> Values.reduced(type, op, nranks, i));
      }
      case 1 -> {
        TypedBuffer all = buffer(type, count * nranks);
        communicator.allGather(filled(communicator, type, count), all);
        Values.check(what, all, i -> Values.of((int) (i / count), i % count));
      }
      case 2 -> {
        TypedBuffer part = buffer(type, count);
        communicator.reduceScatter(filled(communicator, type, count * nranks), part, op);
        Values.check(what, part, i -> Values.reduced(type, op, nranks, rank * count + i));
      }
      case 3 -> {
        TypedBuffer data = filled(communicator, type, count);
        communicator.broadcast(data, root);
        Values.check(what, data, i -> Values.of(root, i));
      }
      case 4 -> {
        TypedBuffer all = buffer(type, count * nranks);
        communicator.allToAll(filled(communicator, type, count * nranks), all);
        Values.check(what, all, i -> Values.of((int) (i / count), rank * count + i % count));
      }
      case 5 -> {
        TypedBuffer data = filled(communicator, type, count);
        TypedBuffer result = rank == root ? buffer(type, count) : TypedBuffer.empty(type);
        communicator.reduce(data, result, op, root);
        Values.check(what, result, i -> Values.reduced(type, op, nranks, i));
      }
      case 6 -> {
        TypedBuffer all = buffer(type, rank == root ? count * nranks : 0);
        communicator.gather(filled(communicator, type, count), all, root);
        Values.check(what, all, i -> Values.of((int) (i / count), i % count));
      }
      case 7 -> {
        TypedBuffer part = buffer(type, count);
        communicator.scatter(
            filled(communicator, type, rank == root ? count * nranks : 0), part, root);
        Values.check(what, part, i -> Values.of(root, rank * count + i));
      }
      case 8 ->
          RaggedContract.exchange(
              communicator, type, 1 + root % 2, 1 + count % 3, RaggedContract.MIXED);
      case 9 -> ring(communicator, type, count, what);
      case 10 -> {
        TypedBuffer data = unaligned(type, count);
        Values.fill(data, rank);
        communicator.allReduce(data, op);
        Values.check(what, data, i -> Values.reduced(type, op, nranks, i));
      }
      default -> communicator.barrier();
    }
  }

  /** Every rank sends to the right and receives from the left, as one group. */
  private static void ring(Communicator communicator, DataType type, long count, String what) {
    int nranks = communicator.nranks();
    int left = (communicator.rank() + nranks - 1) % nranks;
    TypedBuffer in = buffer(type, count);
    communicator.runGroup(
        List.of(
            new Send(filled(communicator, type, count), (communicator.rank() + 1) % nranks),
            new Receive(in, left)));
    Values.check(what, in, i -> Values.of(left, i));
  }

  /** A buffer at an odd address. */
  private static TypedBuffer unaligned(DataType type, long count) {
    long bytes = count * type.bytes();
    return buffer(DataType.INT8, bytes + 1).slice(1, bytes).as(type);
  }
}
