package io.weft.collectives;

import io.weft.device.Event;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * A buffer for ranks that cannot map each other's memory. It is a direct buffer, so the JVM's limit
 * for direct memory applies. It is freed when it is closed and its last use has ended; if it is
 * never closed, by the garbage collector.
 */
final class PrivateBuffer implements SymmetricBuffer {
  /** What each rank tells the others: type, count, and whether it has the memory. */
  private static final int REQUEST_LONGS = 3;

  private final Communicator communicator;
  private final BlockOwner owner;
  private final TypedBuffer elements;
  private final String reason;

  /** Memory that is not found any more once the buffer is closed. Thread-safe. */
  private static final class BlockOwner implements BufferOwner {
    private final ByteBuffer memory;
    private final long address;
    private boolean closed;

    /** The uses that have not ended, and the buffer itself. */
    private int uses = 1;

    BlockOwner(ByteBuffer memory) {
      this.memory = memory;
      this.address = Memory.addressOf(memory);
    }

    @Override
    public synchronized long address() {
      if (closed) {
        throw new IllegalStateException("the buffer is closed");
      }
      return address;
    }

    @Override
    public long bytes() {
      return memory.capacity();
    }

    @Override
    public void usedUntil(Event event) {
      synchronized (this) {
        if (closed) {
          throw new IllegalStateException("the buffer is closed");
        }
        uses++;
      }
      event.whenReleased(this::release);
    }

    private synchronized void release() {
      uses--;
      if (uses == 0) {
        Memory.unmap(memory);
      }
    }

    synchronized void close() {
      if (!closed) {
        closed = true;
        release();
      }
    }
  }

  private PrivateBuffer(
      Communicator communicator, BlockOwner owner, DataType type, long count, String reason) {
    this.communicator = communicator;
    this.owner = owner;
    this.reason = reason;
    this.elements = TypedBuffer.of(owner, 0, type, count);
  }

  /**
   * Allocates a buffer, then compares the requests of all ranks. Collective.
   *
   * @param count elements of less than 2 GiB
   * @throws CollectiveException on all ranks: of kind MISMATCH if they ask for different buffers,
   *     INVALID if the count is not allowed, IO if a rank has no memory
   */
  static PrivateBuffer allocate(
      Communicator communicator, DataType type, long count, String reason) {
    BlockOwner owner = tryAllocate(type, count);
    try {
      requireSame(communicator, type, count, owner != null);
    } catch (RuntimeException | Error e) {
      if (owner != null) {
        owner.close();
      }
      throw e;
    }
    return new PrivateBuffer(communicator, owner, type, count, reason);
  }

  /** Null without memory, so that this rank still tells the others. */
  private static BlockOwner tryAllocate(DataType type, long count) {
    if (!isAllowed(type, count)) {
      return null;
    }
    try {
      return new BlockOwner(ByteBuffer.allocateDirect((int) (count * type.bytes())));
    } catch (OutOfMemoryError e) {
      return null;
    }
  }

  private static boolean isAllowed(DataType type, long count) {
    return count >= 0 && count <= Integer.MAX_VALUE / type.bytes();
  }

  private static TypedBuffer zeros(DataType type, int count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(count * type.bytes()), type);
  }

  private static void requireSame(
      Communicator communicator, DataType type, long count, boolean hasMemory) {
    int n = communicator.nranks();
    TypedBuffer all = zeros(DataType.INT64, REQUEST_LONGS * n);
    TypedBuffer own = all.slice((long) REQUEST_LONGS * communicator.rank(), REQUEST_LONGS);
    Memory.putLong(own.address(), type.code());
    Memory.putLong(own.address() + 8, count);
    Memory.putLong(own.address() + 16, hasMemory ? 1 : 0);
    communicator.allGather(own, all);
    List<Integer> others = new ArrayList<>();
    List<Integer> without = new ArrayList<>();
    for (int rank = 0; rank < n; rank++) {
      long request = all.address() + 8L * REQUEST_LONGS * rank;
      if (Memory.getLong(request) != Memory.getLong(all.address())
          || Memory.getLong(request + 8) != Memory.getLong(all.address() + 8)) {
        others.add(rank);
      }
      if (Memory.getLong(request + 16) == 0) {
        without.add(rank);
      }
    }
    String what =
        "rank %d asks for a symmetric buffer of %d %s".formatted(communicator.rank(), count, type);
    if (!others.isEmpty()) {
      throw new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          others,
          what
              + ", but %s for another than rank 0; all ranks"
                  .formatted(CollectiveException.name(others))
              + " must ask for the same buffers in the same order");
    }
    if (!isAllowed(type, count)) {
      throw CollectiveException.invalid(
          what + "; in private memory 0 to " + Integer.MAX_VALUE / type.bytes() + " are allowed");
    }
    if (!without.isEmpty()) {
      throw new CollectiveException(
          CollectiveException.Kind.IO,
          without,
          what
              + ", but %s cannot allocate so much direct memory; raise -XX:MaxDirectMemorySize"
                  .formatted(CollectiveException.name(without)));
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
    owner.close();
  }
}
