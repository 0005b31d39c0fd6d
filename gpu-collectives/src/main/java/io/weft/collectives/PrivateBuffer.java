package io.weft.collectives;

import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * A buffer for ranks that cannot map each other's memory. The garbage collector frees it after the
 * last use.
 */
final class PrivateBuffer implements SymmetricBuffer {
  private final Communicator communicator;
  private final TypedBuffer elements;
  private final String reason;
  private volatile boolean closed;

  /** Memory that is not found any more once the buffer is closed. */
  private final class Owner implements BufferOwner {
    private final TypedBuffer memory;

    Owner(TypedBuffer memory) {
      this.memory = memory;
    }

    @Override
    public long address() {
      if (closed) {
        throw new IllegalStateException("the buffer is closed");
      }
      return memory.address();
    }

    @Override
    public long bytes() {
      return memory.bytes();
    }
  }

  private PrivateBuffer(Communicator communicator, DataType type, long count, String reason) {
    this.communicator = communicator;
    this.reason = reason;
    this.elements = TypedBuffer.of(new Owner(zeros(type, count)), 0, type, count);
  }

  /** Collective: all ranks ask for the same type and count, or all fail. */
  static PrivateBuffer allocate(
      Communicator communicator, DataType type, long count, String reason) {
    requireSame(communicator, type, count);
    return new PrivateBuffer(communicator, type, count, reason);
  }

  private static TypedBuffer zeros(DataType type, long count) {
    long bytes = Math.multiplyExact(count, (long) type.bytes());
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(Math.toIntExact(bytes)), type);
  }

  private static void requireSame(Communicator communicator, DataType type, long count) {
    TypedBuffer all = zeros(DataType.INT64, 2L * communicator.nranks());
    TypedBuffer own = all.slice(2L * communicator.rank(), 2);
    Memory.putLong(own.address(), type.code());
    Memory.putLong(own.address() + 8, count);
    communicator.allGather(own, all);
    List<Integer> others = new ArrayList<>();
    for (int rank = 0; rank < communicator.nranks(); rank++) {
      if (Memory.getLong(all.address() + 16L * rank) != Memory.getLong(all.address())
          || Memory.getLong(all.address() + 16L * rank + 8) != Memory.getLong(all.address() + 8)) {
        others.add(rank);
      }
    }
    if (!others.isEmpty()) {
      throw new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          others,
          "rank %d asks for a symmetric buffer of %d %s, but %s for another than rank 0; all ranks"
                  .formatted(communicator.rank(), count, type, CollectiveException.name(others))
              + " must ask for the same buffers in the same order");
    }
  }

  @Override
  public TypedBuffer elements() {
    return elements;
  }

  @Override
  public Optional<String> whyPrivate() {
    return Optional.of(reason);
  }

  @Override
  public void put(TypedBuffer source, int peer, long first) {
    throw refusal("put");
  }

  @Override
  public void get(TypedBuffer target, int peer, long first) {
    throw refusal("get");
  }

  @Override
  public void signal(int peer, int slot, int value) {
    throw refusal("signal");
  }

  @Override
  public void await(int peer, int slot, int value) {
    throw refusal("await");
  }

  private CollectiveException refusal(String call) {
    return CollectiveException.invalid(
        "no %s on rank %d, because its buffer is private: %s. Use send and receive"
            .formatted(call, communicator.rank(), reason));
  }

  /** Every member sends a byte to every other. */
  @Override
  public void barrier(int... ranks) {
    if (ranks.length == 0) {
      communicator.barrier();
      return;
    }
    List<Operation> messages = new ArrayList<>();
    for (int peer : IntStream.of(ranks).sorted().distinct().toArray()) {
      if (peer != communicator.rank()) {
        messages.add(new Send(zeros(DataType.INT8, 1), peer));
        messages.add(new Receive(zeros(DataType.INT8, 1), peer));
      }
    }
    if (IntStream.of(ranks).noneMatch(rank -> rank == communicator.rank())) {
      throw CollectiveException.invalid(
          "rank "
              + communicator.rank()
              + " is not a member of the barrier of ranks "
              + Arrays.toString(ranks));
    }
    communicator.runGroup(messages);
  }

  @Override
  public void close() {
    closed = true;
  }
}
