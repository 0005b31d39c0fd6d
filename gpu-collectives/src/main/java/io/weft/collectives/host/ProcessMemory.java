package io.weft.collectives.host;

import com.sun.jna.Native;
import io.weft.device.NativeBinding;
import io.weft.device.UnavailableLibraryException;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.Optional;
import java.util.UUID;

/**
 * Reads memory of other processes of this machine by the kernel ({@code process_vm_readv}): one
 * copy from their memory to that of this process. The kernel checks the permission at every read. A
 * wrong address of another process is an error and does not end this process. A wrong address of
 * this process is an error too.
 *
 * <p>One thread at a time.
 */
final class ProcessMemory {
  private static final int NOT_PERMITTED = 1;
  private static final int NO_PROCESS = 3;
  private static final int BAD_ADDRESS = 14;
  private static final int NO_FUNCTION = 38;
  private static final int PROBE_BYTES = 16;

  /** The two vectors of a call, each an address and a number of bytes. */
  private final ByteBuffer vectors = ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder());

  private final long vectorAddress = Memory.addressOf(vectors);

  /**
   * A process for its readers.
   *
   * @param id in its own namespace of process ids
   * @param probe the address of memory with known content
   */
  record Location(long id, long probe) {}

  /** The memory that other processes read as a probe. It contains an identity of this process. */
  private static final class Probe {
    static final ByteBuffer MEMORY = ByteBuffer.allocateDirect(PROBE_BYTES);

    private Probe() {}
  }

  /** A separate class, so that JNA is loaded only when it is used. */
  private static final class Functions {
    private static boolean bound;

    private Functions() {}

    static synchronized void load() {
      if (!bound) {
        NativeBinding.bind(Path.of("libc.so.6"), Functions.class);
        bound = true;
      }
    }

    // The name is that of the C function.
    static native long process_vm_readv(
        int process, long local, long localCount, long remote, long remoteCount, long flags);

    static int lastError() {
      return Native.getLastError();
    }
  }

  /**
   * This process for its readers.
   *
   * @param identity of this process, which readers compare
   */
  static synchronized Location own(UUID identity) {
    Probe.MEMORY.putLong(0, identity.getMostSignificantBits());
    Probe.MEMORY.putLong(8, identity.getLeastSignificantBits());
    return new Location(ProcessHandle.current().pid(), Memory.addressOf(Probe.MEMORY));
  }

  /**
   * Reads the probe of a process, which may be this one. A process in another namespace of process
   * ids is refused, because its id belongs to another process here or to none.
   *
   * @param identity of the process
   * @return why its memory cannot be read; empty if it can
   */
  Optional<String> refusal(Location location, UUID identity) {
    try {
      Functions.load();
    } catch (UnavailableLibraryException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
    ByteBuffer content = ByteBuffer.allocateDirect(PROBE_BYTES);
    long read =
        read(Math.toIntExact(location.id()), location.probe(), Memory.addressOf(content), 16);
    if (read < 0) {
      return Optional.of(meaning(read));
    }
    boolean same =
        read == PROBE_BYTES && new UUID(content.getLong(0), content.getLong(8)).equals(identity);
    return same
        ? Optional.empty()
        : Optional.of("process " + location.id() + " is another one here: different namespaces");
  }

  /**
   * Reads bytes of a process that {@link #refusal} has accepted.
   *
   * @param from address in that process
   * @param to address in this process
   * @return the number of bytes read from the start on, possibly fewer, or a negative error
   */
  long read(int process, long from, long to, long bytes) {
    vectors.putLong(0, to);
    vectors.putLong(8, bytes);
    vectors.putLong(16, from);
    vectors.putLong(24, bytes);
    long read = Functions.process_vm_readv(process, vectorAddress, 1, vectorAddress + 16, 1, 0);
    return read < 0 ? -Functions.lastError() : read;
  }

  /** Whether a result of {@link #read} tells that the process has ended. */
  static boolean isEnd(long result) {
    return result == -NO_PROCESS;
  }

  /** Explains a result of {@link #read} that is not positive. */
  static String meaning(long result) {
    String error = "error " + -result + " of the system: ";
    return switch ((int) -result) {
      case 0 -> "nothing was read";
      case NOT_PERMITTED ->
          error
              + "not permitted; kernel.yama.ptrace_scope, another user or the container's profile"
              + " forbids it";
      case NO_PROCESS -> error + "there is no such process";
      case BAD_ADDRESS -> error + "the memory is not mapped";
      case NO_FUNCTION -> error + "the kernel or the container's profile does not offer it";
      default -> "error " + -result + " of the system";
    };
  }
}
