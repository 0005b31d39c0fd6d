package io.weft.memory;

import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A read-write mapping of a file that another process reserved (see {@link MappedSegment#reserve})
 * and that this process may write to.
 *
 * <p>It belongs to the code that attached it. Deleting the file, or the end of the other process,
 * does not affect the mapping. After {@link #close()} the address is invalid, and using it ends the
 * process. Thread-safe, but the caller must ensure that no thread uses the memory at close.
 */
public final class SharedMapping implements AutoCloseable {
  private final long address;
  private final AtomicReference<MappedByteBuffer> mapping;

  private SharedMapping(MappedByteBuffer mapping) {
    this.address = Memory.addressOf(mapping);
    this.mapping = new AtomicReference<>(mapping);
  }

  /**
   * Maps all of an existing file.
   *
   * @param bytes the required length
   * @throws IOException when the file does not exist, cannot be written, or has another length
   */
  public static SharedMapping attach(Path file, long bytes) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (channel.size() != bytes) {
        throw new IOException(file + " has " + channel.size() + " bytes instead of " + bytes);
      }
      return new SharedMapping(channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes));
    }
  }

  /** The address of byte 0 in this process. */
  public long address() {
    return address;
  }

  /** Unmaps the memory; the file stays. Closing again does nothing. */
  @Override
  public void close() {
    MappedByteBuffer open = mapping.getAndSet(null);
    if (open != null) {
      Memory.unmap(open);
    }
  }
}
