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
  private static final long POLL_NANOS = 20_000;

  private final String name;

  /** NCCL writes the handle here once more, on its own thread: this must not move or go before. */
  private final Memory place;

  private long handle;

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
