package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.OrderedCommunicator;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import io.weft.memory.OffsetLedger;
import java.util.List;
import java.util.Objects;
import java.util.Optional;

/**
 * A symmetric buffer in a window: its elements, and behind them the slots of its barriers. The
 * window is filled with zeros before any peer may access it, also if it was used before.
 */
public final class SharedBuffer implements SymmetricBuffer {
  private final Window window;
  private final TypedBuffer elements;
  private final SignalBarrier barrier;
  private final SymmetricArena arena;

  private SharedBuffer(SymmetricArena arena, Window window, DataType type, long count) {
    this.arena = arena;
    this.window = window;
    this.elements = window.buffer(0, type, count);
    this.barrier =
        new SignalBarrier(window, OffsetLedger.aligned(elements.bytes()), arena.waiting());
  }

  /**
   * Allocates a buffer in an arena of at most 64 ranks. Collective.
   *
   * @param count 0 or more; otherwise all ranks get the error of this one
   * @throws CollectiveException as {@link SymmetricArena#window}
   */
  public static SharedBuffer allocate(SymmetricArena arena, DataType type, long count) {
    int nranks = arena.communicator().nranks();
    Window window =
        arena.window(
            count < 0
                ? count
                : OffsetLedger.aligned(count * type.bytes()) + SignalBarrier.bytes(nranks),
            count + " " + type,
            opened -> Memory.setMemory(opened.address(), opened.bytes(), (byte) 0));
    return new SharedBuffer(arena, window, type, count);
  }

  /** Why a communicator has no such buffers; empty if it has. The same on all ranks. */
  public static Optional<String> refusal(int nranks, DataType type, long count) {
    if (nranks > SignalBarrier.MAX_RANKS) {
      return Optional.of(nranks + " ranks are more than " + SignalBarrier.MAX_RANKS);
    }
    long most =
        (SymmetricArena.mostBytes(nranks) - SignalBarrier.bytes(nranks)) / type.bytes() - 128;
    return count <= most
        ? Optional.empty()
        : Optional.of(count + " " + type + " are more than " + most);
  }

  @Override
  public TypedBuffer elements() {
    return elements;
  }

  @Override
  public Optional<String> whyPrivate() {
    return Optional.empty();
  }

  @Override
  public void put(TypedBuffer source, int peer, long first) {
    window.put(source, peer, remote(source, first));
  }

  @Override
  public void get(TypedBuffer target, int peer, long first) {
    window.get(target, peer, remote(target, first));
  }

  private long remote(TypedBuffer own, long first) {
    if (own.type() != elements.type()) {
      throw new CollectiveException(
          Kind.INVALID,
          List.of(window.rank()),
          own.type() + " elements for a symmetric buffer of " + elements.type());
    }
    Objects.checkFromIndexSize(first, own.count(), elements.count());
    return first * elements.type().bytes();
  }

  @Override
  public void signal(int peer, int slot, int value) {
    window.signal(peer, slot, value);
  }

  @Override
  public void await(int peer, int slot, int value) {
    try {
      window.await(peer, slot, value, deadline());
    } catch (CollectiveException e) {
      throw broken(e);
    }
  }

  /** A failed wait breaks the communicator, so no rank waits for this one or keeps the memory. */
  private CollectiveException broken(CollectiveException cause) {
    if (cause.kind() != Kind.INVALID) {
      if (arena.communicator() instanceof OrderedCommunicator ordered) {
        ordered.abort(cause);
      } else {
        arena.communicator().abort(cause.getMessage());
      }
    }
    return cause;
  }

  private Deadline deadline() {
    return Deadline.after(arena.communicator().timeout());
  }

  @Override
  public void barrier(int... ranks) {
    try {
      if (ranks.length == 0) {
        barrier.await(deadline());
      } else {
        barrier.await(barrier.group(ranks), deadline());
      }
    } catch (CollectiveException e) {
      throw broken(e);
    }
  }

  @Override
  public void close() {
    window.close();
  }

  @Override
  public String toString() {
    return "symmetric buffer of " + elements;
  }
}
