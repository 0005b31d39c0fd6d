package io.weft.collectives.host;

import io.weft.device.NativeBinding;
import io.weft.device.UnavailableLibraryException;
import io.weft.memory.Memory;
import java.nio.file.Path;

/**
 * Copies, mostly to memory that another process has read: slots, stages and rings. A plain store
 * there waits until the other processor gives the cache line up, one line after the other. The C
 * library's {@code memmove} writes whole lines by one instruction where the processor is fast at
 * it, and many lines change hands at once. Measured between processors far from each other: a third
 * of the time.
 *
 * <p>A later release publishes the bytes: the library itself fences stores that bypass the cache.
 * Without JNA it copies as {@link Memory#copy}. Thread-safe: stateless.
 */
final class LibraryCopy {
  /** Below this a call through JNA costs more than it saves. */
  static final int MIN_BYTES = 8 << 10;

  /**
   * From here the library is as fast or faster to any memory: a plain store first reads the line
   * that it overwrites. Measured between slow caches: 0.7 to 0.9 of the time, but up to 1.5 times
   * the time for 128 KiB.
   */
  private static final int LARGE_BYTES = 256 << 10;

  private static final boolean BOUND = isBound();

  private LibraryCopy() {}

  /** A separate class, so that JNA is loaded only when it is used. */
  private static final class Functions {
    private Functions() {}

    // The name is that of the C function.
    static native long memmove(long to, long from, long bytes);
  }

  private static boolean isBound() {
    try {
      NativeBinding.bind(Path.of("libc.so.6"), Functions.class);
      return true;
    } catch (UnavailableLibraryException e) {
      return false;
    }
  }

  /** Binds the function, so that no copy waits for it. */
  static void load() {
    // The first use of this class has bound it.
  }

  /** Copies bytes to memory that another process has read; the ranges may overlap. */
  static void copy(long from, long to, long bytes) {
    if (bytes >= MIN_BYTES && BOUND) {
      long unused = Functions.memmove(to, from, bytes);
    } else {
      Memory.copy(from, to, bytes);
    }
  }

  /** Copies bytes to any memory; the ranges may overlap. */
  static void copyToAny(long from, long to, long bytes) {
    if (bytes >= LARGE_BYTES) {
      copy(from, to, bytes);
    } else {
      Memory.copy(from, to, bytes);
    }
  }
}
