package io.weft.collectives.nccl;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.nccl.NcclFunctions.NcclWindowFunctions;
import io.weft.device.Deadline;
import java.lang.ref.Reference;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * A non-blocking communicator of NCCL. Confined to the thread that creates it, whose current device
 * is that of the communicator. It ends with {@link #abort} or {@link #finish}.
 */
final class NcclComm {
  /**
   * Size of ncclConfig_t in NCCL 2.18, which later versions accept: size, magic, version, blocking,
   * cgaClusterSize, minCTAs, maxCTAs, netName, splitShare.
   */
  static final int CONFIG_BYTES = 48;

  static final int CONFIG_MAGIC = 0xcafebeef;
  private static final int CONFIG_VERSION = 21800;

  /** NCCL's own choice of a number. */
  static final int UNDEFINED = Integer.MIN_VALUE;

  private static final int SYMMETRIC = 1;
  private static final long POLL_NANOS = 20_000;

  /** A park takes 60 us or more, and NCCL and small kernels often less: waits begin with polls. */
  private static final long SPIN_NANOS = 100_000;

  private final String name;

  /**
   * NCCL writes the handle here again on its own thread, so this must neither move nor be freed
   * earlier.
   */
  private final Memory place;

  private long handle;

  private NcclComm(String name, Memory place) {
    this.name = name;
    this.place = place;
    this.handle = place.getLong(0);
  }

  /**
   * Starts the creation; {@link #awaitReady} waits for its end.
   *
   * @param maxBlocks the most blocks of a kernel; 0 for NCCL's choice
   */
  static NcclComm start(String name, byte[] id, int rank, int nranks, int maxBlocks) {
    Memory config = config(maxBlocks);
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

  static Memory config(int maxBlocks) {
    Memory config = new Memory(CONFIG_BYTES);
    config.clear();
    config.setLong(0, CONFIG_BYTES);
    config.setInt(8, CONFIG_MAGIC);
    config.setInt(12, CONFIG_VERSION);
    config.setInt(16, 0);
    config.setInt(20, UNDEFINED);
    config.setInt(24, UNDEFINED);
    config.setInt(28, maxBlocks == 0 ? UNDEFINED : maxBlocks);
    config.setInt(40, UNDEFINED);
    return config;
  }

  long handle() {
    return handle;
  }

  /** Whether it was aborted or has ended. */
  boolean hasEnded() {
    return handle == 0;
  }

  /** Throws for the result of a call unless it is success or "in progress". */
  void check(int result, String what) {
    if (result != NcclLibrary.SUCCESS && result != NcclLibrary.IN_PROGRESS) {
      throw NcclLibrary.failure(result, handle, what + " on " + name);
    }
  }

  /**
   * Whether NCCL has finished the last call.
   *
   * @throws CollectiveException if NCCL has failed, in that call or since
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

  /** Waits until NCCL has finished the last call. The watch may end the wait by throwing. */
  void awaitReady(String what, Deadline deadline, Runnable watch) {
    long start = System.nanoTime();
    while (!isReady(what)) {
      watch.run();
      if (deadline.expired()) {
        throw new CollectiveException(
            CollectiveException.Kind.TIMEOUT,
            List.of(),
            what + " on " + name + " was not taken by NCCL within " + deadline);
      }
      pause(start, POLL_NANOS);
    }
  }

  /**
   * The pause between two polls of a wait: a moment at first, then a quarter of the time so far.
   *
   * @param longestNanos the limit of a pause
   */
  static void pause(long startNanos, long longestNanos) {
    long elapsed = System.nanoTime() - startNanos;
    if (elapsed < SPIN_NANOS) {
      Thread.onSpinWait();
    } else {
      LockSupport.parkNanos(Math.min(longestNanos, elapsed / 4));
    }
  }

  /**
   * Registers memory as a window. All ranks call it together.
   *
   * @return the window; 0 if NCCL cannot use it on this machine
   */
  long register(long address, long bytes, Deadline deadline, Runnable watch) {
    Memory window = new Memory(Long.BYTES);
    window.clear();
    check(
        NcclWindowFunctions.ncclCommWindowRegister(
            handle, address, bytes, Pointer.nativeValue(window), SYMMETRIC),
        "ncclCommWindowRegister");
    // NCCL writes to this memory until it is ready. On failure, NCCL is aborted before the memory
    // is freed.
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

  /** Ends a window; the caller keeps its memory. */
  void deregister(long window) {
    if (handle != 0) {
      check(
          NcclWindowFunctions.ncclCommWindowDeregister(handle, window), "ncclCommWindowDeregister");
    }
  }

  /** Ends the communicator and all its work on this rank at once. */
  void abort() {
    if (handle != 0) {
      NcclFunctions.ncclCommAbort(handle);
      forget();
    }
  }

  /**
   * Ends the communicator together with the other ranks. If they do not arrive in time, aborts it.
   */
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
