package io.weft.device.cuda;

import com.sun.jna.Native;
import io.weft.device.NativeBinding;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;

/** Functions of libc on 64-bit Linux that Java does not offer. Call {@link #load} first. */
final class LibcFunctions {
  private static final int TRY_AGAIN = 11;
  private static final int TOO_MANY_ON_HOST = 23;
  private static final int TOO_MANY_OPEN = 24;
  private static final int REFUSED = 111;

  private static boolean bound;

  private LibcFunctions() {}

  /**
   * Binds the functions once.
   *
   * @throws io.weft.device.UnavailableLibraryException without JNA or on another system
   */
  static synchronized void load() {
    if (!bound) {
      NativeBinding.bind(Path.of("libc.so.6"), LibcFunctions.class);
      bound = true;
    }
  }

  static native int socket(int domain, int type, int protocol);

  static native int bind(int socket, byte[] address, int length);

  static native int listen(int socket, int backlog);

  static native int accept4(int socket, long address, long length, int flags);

  static native int connect(int socket, byte[] address, int length);

  static native int getsockopt(int socket, int level, int name, int[] value, int[] length);

  static native long sendmsg(int socket, long message, int flags);

  static native long recvmsg(int socket, long message, int flags);

  static native int geteuid();

  static native int close(int descriptor);

  /** Throws the error of a result below zero. */
  static long check(long result, String what) {
    if (result < 0) {
      throw new UncheckedIOException(
          new IOException(what + " failed with error " + meaning(Native.getLastError())));
    }
    return result;
  }

  /** Explains errors with a cause outside of this process. */
  private static String meaning(int error) {
    return switch (error) {
      case TRY_AGAIN -> error + " of the system: it is full";
      case TOO_MANY_OPEN, TOO_MANY_ON_HOST ->
          error + " of the system: too many files and sockets are open";
      case REFUSED ->
          error + " of the system: it is closed, or in another network namespace of the host";
      default -> error + " of the system";
    };
  }

  /** Whether the last call of this thread failed only because there was nothing to receive. */
  static boolean wasEmpty() {
    return Native.getLastError() == TRY_AGAIN;
  }
}
