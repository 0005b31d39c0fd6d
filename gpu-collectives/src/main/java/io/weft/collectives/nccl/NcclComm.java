package io.weft.collectives.nccl;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.device.Deadline;
import java.lang.ref.Reference;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * A communicator of NCCL that never blocks. Confined to the thread that makes it, which has the
 * device as its current one; it ends with {@link #abort} or {@link #finish}.
 */
final class NcclComm {
  /**
   * ncclConfig_t as NCCL 2.14 had it, which every later one takes: size, magic, version, blocking.
   */
  private static final int CONFIG_BYTES = 24;

  private static final int CONFIG_MAGIC = 0xcafebeef;
  private static final int CONFIG_VERSION = 21400;
  private static final int SYMMETRIC = 1;
  private static final int NOTHING_RUNS = 0;
  private static final int END_WHAT_RUNS = 1;
  private static final long POLL_NANOS = 20_000;

  private final String name;

  /** NCCL writes the handle here once more, on its own thread: this must not move or go before. */
  private final Memory place;

  private long handle;
  private boolean revoked;

  private NcclComm(String name, Memory place) {
    this.name = name;
    this.place = place;
    this.handle = place.getLong(0);
  }

  /** Starts to make one; {@link #awaitReady} says when it is there. */
  static NcclComm start(String name, byte[] id, int rank, int nranks) {
    Memory config = new Memory(CONFIG_BYTES);
    config.clear();
    config.setLong(0, CONFIG_BYTES);
    config.setInt(8, CONFIG_MAGIC);
    config.setInt(12, CONFIG_VERSION);
    Memory place = new Memory(Long.BYTES);
    place.clear();
    int result;
    try {
      result =
          NcclFunctions.ncclCommInitRankConfig(
              Pointer.nativeValue(place),
              nranks,
              new NcclUniqueId(id),
              rank,
              Pointer.nativeValue(config));
    } finally {
      Reference.reachabilityFence(config);
    }
    if (result != NcclLibrary.SUCCESS && result != NcclLibrary.IN_PROGRESS) {
      throw NcclLibrary.failure(result, place.getLong(0), "creating " + name);
    }
    return new NcclComm(name, place);
  }

  long handle() {
    return handle;
  }

  /** Fails what a call gave, unless it is done or goes on. */
  void check(int result, String what) {
    if (result != NcclLibrary.SUCCESS && result != NcclLibrary.IN_PROGRESS) {
      throw NcclLibrary.failure(result, handle, what + " on " + name);
    }
  }

  /**
   * Whether what was called last has been taken.
   *
   * @throws CollectiveException when NCCL has failed, then or since
   */
  boolean isReady(String what) {
    if (handle == 0) {
      throw new CollectiveException(
          CollectiveException.Kind.ABORTED, List.of(), what + ": " + name + " was aborted");
    }
    int[] state = new int[1];
    check(NcclFunctions.ncclCommGetAsyncError(handle, state), what);
    check(state[0], what);
    return state[0] == NcclLibrary.SUCCESS;
  }

  /** Waits until what was called last has been taken; the watch may end the wait with a failure. */
  void awaitReady(String what, Deadline deadline, Runnable watch) {
    while (!isReady(what)) {
      watch.run();
      if (deadline.expired()) {
        throw new CollectiveException(
            CollectiveException.Kind.TIMEOUT,
            List.of(),
            what + " on " + name + " was not taken by NCCL within " + deadline);
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  /**
   * Splits it, which all ranks do together. The part belongs to whichever thread uses it first, and
   * is to be awaited there.
   *
   * @param color 0 or more, ranks of one color become one part; -1 for none
   * @param key orders the ranks of a part
   * @return the part, null without a color
   */
  NcclComm split(String part, int color, int key, Deadline deadline, Runnable watch) {
    Memory made = new Memory(Long.BYTES);
    made.clear();
    check(
        NcclFunctions.ncclCommSplit(handle, color, key, Pointer.nativeValue(made), 0),
        "ncclCommSplit");
    try {
      awaitReady("splitting", deadline, watch);
    } catch (RuntimeException e) {
      abort();
      throw e;
    } finally {
      Reference.reachabilityFence(made);
    }
    return made.getLong(0) == 0 ? null : new NcclComm(part, made);
  }

  /**
   * Ends what runs on it and keeps it, for {@link #shrink} and {@link #abort} alone.
   *
   * @return false where this version or its state does not let it: then it has to be aborted. A
   *     failure of NCCL's own network stays in its state, so after one it never does
   */
  boolean revoke(Deadline deadline) {
    if (handle == 0 || revoked || !NcclLibrary.loaded().revokes() || isBusy()) {
      return revoked;
    }
    int result = NcclRevokeFunctions.ncclCommRevoke(handle, 0);
    while (result == NcclLibrary.IN_PROGRESS && !deadline.expired()) {
      LockSupport.parkNanos(POLL_NANOS);
      result = state();
    }
    revoked = result == NcclLibrary.SUCCESS;
    return revoked;
  }

  /**
   * Whether it has not taken yet what was called last; nothing but its abort may be called then.
   */
  boolean isBusy() {
    return state() == NcclLibrary.IN_PROGRESS;
  }

  private int state() {
    int[] state = new int[1];
    int result = NcclFunctions.ncclCommGetAsyncError(handle, state);
    return result == NcclLibrary.SUCCESS ? state[0] : result;
  }

  /** Whether it was aborted or has ended. */
  boolean isGone() {
    return handle == 0;
  }

  /**
   * Makes a communicator of the ranks that are left, which all of those do together. It belongs to
   * whichever thread uses it first, and is to be awaited there; this one is still to be aborted.
   *
   * @param excluded the ranks that are left out, ascending, one or more
   */
  NcclComm shrink(String rest, List<Integer> excluded, Deadline deadline, Runnable watch) {
    Memory made = new Memory(Long.BYTES);
    made.clear();
    Memory ranks = new Memory((long) Integer.BYTES * excluded.size());
    for (int i = 0; i < excluded.size(); i++) {
      ranks.setInt((long) Integer.BYTES * i, excluded.get(i));
    }
    try {
      check(
          NcclShrinkFunctions.ncclCommShrink(
              handle,
              Pointer.nativeValue(ranks),
              excluded.size(),
              Pointer.nativeValue(made),
              0,
              revoked ? NOTHING_RUNS : END_WHAT_RUNS),
          "ncclCommShrink");
      awaitReady("shrinking", deadline, watch);
    } catch (RuntimeException e) {
      abort();
      throw e;
    } finally {
      Reference.reachabilityFence(made);
      Reference.reachabilityFence(ranks);
    }
    return new NcclComm(rest, made);
  }

  /**
   * Registers memory as a window, which all ranks do together.
   *
   * @return the window, 0 where NCCL has no use for it on this machine
   */
  long register(long address, long bytes, Deadline deadline, Runnable watch) {
    Memory window = new Memory(Long.BYTES);
    window.clear();
    check(
        NcclWindowFunctions.ncclCommWindowRegister(
            handle, address, bytes, Pointer.nativeValue(window), SYMMETRIC),
        "ncclCommWindowRegister");
    // NCCL writes to it until it is ready; where that fails, it is aborted before this goes.
    try {
      awaitReady("registering a window", deadline, watch);
    } catch (RuntimeException e) {
      abort();
      throw e;
    } finally {
      Reference.reachabilityFence(window);
    }
    return window.getLong(0);
  }

  /** Ends a window; its memory stays the caller's. */
  void deregister(long window) {
    if (handle != 0) {
      check(
          NcclWindowFunctions.ncclCommWindowDeregister(handle, window), "ncclCommWindowDeregister");
    }
  }

  /** Ends it here at once, with all that runs on it. */
  void abort() {
    if (handle != 0) {
      NcclFunctions.ncclCommAbort(handle);
      forget();
    }
  }

  /** Ends it together with the other ranks; where they do not come in time, as {@link #abort}. */
  void finish(Deadline deadline) {
    if (handle == 0) {
      return;
    }
    try {
      check(NcclFunctions.ncclCommFinalize(handle), "finalizing");
      awaitReady("finalizing", deadline, () -> {});
      NcclFunctions.ncclCommDestroy(handle);
      forget();
    } catch (CollectiveException e) {
      abort();
    }
  }

  private void forget() {
    try {
      handle = 0;
    } finally {
      Reference.reachabilityFence(place);
    }
  }
}
