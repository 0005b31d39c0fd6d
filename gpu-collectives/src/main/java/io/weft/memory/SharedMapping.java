package io.weft.memory;

import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Read-write mapping of a file that somebody else reserved (see {@link MappedSegment#reserve}) and
 * lets this process write to.
 *
 * <p>Owned by whoever attached it. Deleting the file, or the end of its owner, does not hurt the
 * mapping. After {@link #close()} the address is invalid, and using it ends the process.
 * Thread-safe, but the caller must see to it that nobody uses the memory at close.
 */
public final class SharedMapping implements AutoCloseable {
  private final Path file;
  private final long address;
  private final long size;
  private final AtomicReference<MappedByteBuffer> mapping;

  private SharedMapping(Path file, MappedByteBuffer mapping) {
    this.file = file;
    this.address = Memory.addressOf(mapping);
    this.size = mapping.capacity();
    this.mapping = new AtomicReference<>(mapping);
  }

  /**
   * Maps all of an existing file.
   *
   * @param bytes how long it has to be
   * @throws IOException when it is gone, may not be written, or has another length
   */
  public static SharedMapping attach(Path file, long bytes) throws IOException {
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      if (channel.size() != bytes) {
        throw new IOException(file + " has " + channel.size() + " bytes instead of " + bytes);
      }
      return new SharedMapping(file, channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes));
    }
  }

  /** Where byte 0 is mapped in this process. */
  public long address() {
    return address;
  }

  /** Bytes mapped. */
  public long size() {
    return size;
  }

  public Path file() {
    return file;
  }

  /** Unmaps; the file stays. Closing again does nothing. */
  @Override
  public void close() {
    MappedByteBuffer open = mapping.getAndSet(null);
    if (open != null) {
      Memory.unmap(open);
    }
  }
}
