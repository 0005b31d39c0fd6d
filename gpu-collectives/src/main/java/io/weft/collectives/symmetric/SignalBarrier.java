package io.weft.collectives.symmetric;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.device.Deadline;
import io.weft.memory.Memory;
import java.util.Arrays;
import java.util.List;

/**
 * Barriers on signals in symmetric memory. Each rank raises its slot at every other member, and
 * waits until every other member has raised its slot here. A peer may be one barrier ahead, so a
 * wait accepts any count that is "at least" the expected one.
 *
 * <p>Every pair of ranks counts the barriers that it has passed together. So groups of ranks may
 * overlap, and no rank waits for a rank that is not a member: {0,1} and {1,2} leave each pair
 * agreed on its count. Beside its count a rank writes the group of its barrier, for the last two
 * barriers of the pair. If ranks meet in different groups, both fail with an error that names them.
 *
 * <pre> slots, a line of 128 bytes per peer, written by the peer only: 0 int count | 8 long group
 * of even counts | 16 long group of odd counts counters, a line per peer, written by the owner
 * only: 0 int count
 * </pre>
 *
 * <p>All ranks set their slots and counters before any rank learns their addresses. One thread at a
 * time on each rank. After a failure the barrier is broken.
 */
final class SignalBarrier implements AutoCloseable {
  /** The members of a group are the bits of a long. */
  public static final int MAX_RANKS = Long.SIZE;

  private static final int GROUPS = 8;

  private final Window window;
  private final long offset;
  private final SignalWait waiting;
  private final Group all;
  private CollectiveException failure;

  /** The ranks of a barrier, including this one; created by {@link #group}. */
  public static final class Group {
    private final int[] ranks;
    private final long mask;

    private Group(int[] ranks, long mask) {
      this.ranks = ranks;
      this.mask = mask;
    }

    @Override
    public String toString() {
      return Arrays.toString(ranks);
    }
  }

  /**
   * A barrier in the last bytes of a window, which its owner has initialized.
   *
   * @param offset of the first byte; a multiple of 128
   */
  SignalBarrier(Window window, long offset, SignalWait waiting) {
    this.window = window;
    this.offset = offset;
    this.waiting = waiting;
    int[] ranks = new int[window.nranks()];
    Arrays.setAll(ranks, rank -> rank);
    this.all = group(ranks);
  }

  /** Creates a barrier for the ranks of an arena, 1 to 64. Collective. */
  public static SignalBarrier open(SymmetricArena arena) {
    return open(arena, 0);
  }

  /** Creates a barrier whose counters start at another value, the same on all ranks. */
  static SignalBarrier open(SymmetricArena arena, int start) {
    return open(arena, opened -> initialize(opened, start));
  }

  /** Creates a barrier whose slots and counters this rank initializes so. */
  static SignalBarrier open(SymmetricArena arena, SymmetricArena.Initializer initializer) {
    int nranks = arena.communicator().nranks();
    if (nranks > MAX_RANKS) {
      throw CollectiveException.invalid(
          "a barrier on signals has at most " + MAX_RANKS + " ranks, not " + nranks);
    }
    Window window = arena.window(bytes(nranks), initializer);
    return new SignalBarrier(window, 0, arena.waiting());
  }

  /** The bytes of the slots and counters. */
  static long bytes(int nranks) {
    return 2L * nranks * Window.LINE;
  }

  static void initialize(Window window, int start) {
    Memory.setMemory(window.address(), window.bytes(), (byte) 0);
    for (int peer = 0; peer < window.nranks(); peer++) {
      Memory.putInt(window.address() + peer * Window.LINE, start);
      Memory.putInt(window.address() + (window.nranks() + peer) * Window.LINE, start);
    }
  }

  private long slot(int owner, int from) {
    return window.address(owner) + offset + from * Window.LINE;
  }

  private long counter(int peer) {
    return window.address() + offset + (window.nranks() + peer) * Window.LINE;
  }

  /**
   * Creates a group of members for later barriers.
   *
   * @param ranks this rank and others, in any order; or none, for a barrier that does nothing
   */
  public Group group(int... ranks) {
    int[] sorted = Arrays.stream(ranks).sorted().distinct().toArray();
    long mask = 0;
    for (int rank : sorted) {
      if (rank < 0 || rank >= window.nranks()) {
        throw CollectiveException.invalid(
            "rank " + rank + " is not one of 0 to " + (window.nranks() - 1));
      }
      mask |= 1L << rank;
    }
    if (sorted.length > 0 && (mask & 1L << window.rank()) == 0) {
      throw CollectiveException.invalid(
          "rank " + window.rank() + " is not a member of group " + Arrays.toString(sorted));
    }
    return new Group(sorted, mask);
  }

  /**
   * Returns once all ranks have arrived. Each rank then sees everything that the others wrote
   * before.
   */
  public void await(Deadline deadline) {
    await(all, deadline);
  }

  /**
   * Returns once all members have arrived. Other ranks take no part.
   *
   * @throws CollectiveException naming the rank that did not arrive or is in a barrier of another
   *     group
   */
  public void await(Group group, Deadline deadline) {
    if (failure != null) {
      throw failure.forOperation("a barrier of ranks " + group);
    }
    window.retain();
    try {
      for (int peer : group.ranks) {
        if (peer != window.rank()) {
          raise(peer, group);
        }
      }
      for (int peer : group.ranks) {
        if (peer != window.rank()) {
          awaitPeer(peer, group, deadline);
        }
      }
    } catch (CollectiveException e) {
      failure = e;
      throw e;
    } finally {
      window.release();
    }
  }

  private void raise(int peer, Group group) {
    int value = Memory.getInt(counter(peer)) + 1;
    long slot = slot(peer, window.rank());
    Memory.putLong(slot + groupOffset(value), group.mask);
    Memory.putIntRelease(slot, value);
  }

  private static long groupOffset(int value) {
    return GROUPS + (long) (value & 1) * Long.BYTES;
  }

  private void awaitPeer(int peer, Group group, Deadline deadline) {
    int value = Memory.getInt(counter(peer)) + 1;
    long slot = slot(window.rank(), peer);
    waiting.await(
        slot,
        value,
        peer,
        deadline,
        () -> "its slot in a barrier of ranks " + group + " to " + value);
    long theirs = Memory.getLong(slot + groupOffset(value));
    if (theirs != group.mask) {
      throw disagreement(peer, group, theirs);
    }
    Memory.putInt(counter(peer), value);
  }

  private CollectiveException disagreement(int peer, Group group, long theirs) {
    int[] ranks = new int[Long.bitCount(theirs)];
    int at = 0;
    for (long left = theirs; left != 0; left &= left - 1) {
      ranks[at++] = Long.numberOfTrailingZeros(left);
    }
    return new CollectiveException(
        Kind.MISMATCH,
        List.of(Math.min(peer, window.rank()), Math.max(peer, window.rank())),
        "rank "
            + window.rank()
            + " is in a barrier of ranks "
            + group
            + " but rank "
            + peer
            + " in one of ranks "
            + Arrays.toString(ranks));
  }

  /**
   * The number of barriers that this rank has passed with a peer, as a counter that wraps around.
   */
  int passed(int peer) {
    return Memory.getInt(counter(peer));
  }

  /** The value of the slot that a peer raises here. */
  int raised(int peer) {
    return Memory.getIntAcquire(slot(window.rank(), peer));
  }

  /** Frees the signals; not collective. */
  @Override
  public void close() {
    window.close();
  }
}
