package io.weft.collectives.bootstrap;

import io.weft.collectives.Bootstrap;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A bootstrap for ranks that already have a communicator. Every round is two all-gathers on it, of
 * lengths and of messages, each within the communicator's timeout. A rank that begins a round after
 * its deadline aborts the communicator, so no other rank waits for it.
 *
 * <p>For one thread at a time; does not own the communicator.
 */
public final class CommunicatorBootstrap implements Bootstrap {
  private static final int HEADER = 2;

  private final Communicator communicator;

  /** Exchanges messages on this communicator. */
  public CommunicatorBootstrap(Communicator communicator) {
    this.communicator = communicator;
  }

  @Override
  public UniqueId id() {
    return communicator.id();
  }

  @Override
  public int rank() {
    return communicator.rank();
  }

  @Override
  public int nranks() {
    return communicator.nranks();
  }

  @Override
  public List<byte[]> exchange(String round, byte[] mine, Deadline deadline) {
    requireTime(round, deadline);
    long[] lengths = exchangeLengths(round, mine.length);
    long longest = 0;
    for (long length : lengths) {
      longest = Math.max(longest, length);
    }
    TypedBuffer all = buffer(DataType.INT8, longest * nranks());
    TypedBuffer own = all.slice(longest * rank(), longest);
    requireTime(round, deadline);
    try {
      Memory.copyFrom(mine, Memory.BYTE_ARRAY, own.address(), mine.length);
      communicator.allGather(own, all);
      return read(all, longest, lengths);
    } finally {
      Reference.reachabilityFence(all);
    }
  }

  private void requireTime(String round, Deadline deadline) {
    if (deadline.expired()) {
      String late = "rank " + rank() + " came to round " + round + " after " + deadline;
      communicator.abort(late);
      throw new CollectiveException(Kind.TIMEOUT, List.of(rank()), late);
    }
  }

  private static List<byte[]> read(TypedBuffer all, long stride, long[] lengths) {
    List<byte[]> messages = new ArrayList<>();
    for (int rank = 0; rank < lengths.length; rank++) {
      byte[] message = new byte[(int) lengths[rank]];
      Memory.copyTo(all.address() + stride * rank, message, Memory.BYTE_ARRAY, message.length);
      messages.add(message);
    }
    return messages;
  }

  /**
   * Sends a hash of the round's name with the length, since all-gathers of two rounds have the same
   * form.
   */
  private long[] exchangeLengths(String round, int length) {
    TypedBuffer all = buffer(DataType.INT64, (long) HEADER * nranks());
    TypedBuffer own = all.slice((long) HEADER * rank(), HEADER);
    try {
      Memory.putLong(own.address(), length);
      Memory.putLong(own.address() + 8, round.hashCode());
      communicator.allGather(own, all);
      return readLengths(round, all);
    } finally {
      Reference.reachabilityFence(all);
    }
  }

  private long[] readLengths(String round, TypedBuffer all) {
    long[] lengths = new long[nranks()];
    for (int rank = 0; rank < nranks(); rank++) {
      long header = all.address() + (long) HEADER * 8 * rank;
      lengths[rank] = Memory.getLong(header);
      if (Memory.getLong(header + 8) != round.hashCode()) {
        throw new CollectiveException(
            Kind.MISMATCH,
            List.of(Math.min(rank, rank()), Math.max(rank, rank())),
            "rank " + rank() + " is in round " + round + " but rank " + rank + " in another");
      }
    }
    return lengths;
  }

  private static TypedBuffer buffer(DataType type, long count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(Math.toIntExact(count * type.bytes())), type);
  }

  /** The communicator stays open. */
  @Override
  public void close() {
    // Nothing was opened.
  }
}
