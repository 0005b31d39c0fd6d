package io.weft.memory;

import io.weft.memory.ExtentLedger.Granules;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/**
 * A read-only or read-write mapping of one whole file, or a run of private memory that replaces
 * one.
 *
 * <p>It belongs to the code that created it. Deleting the file does not affect a mapping. {@link
 * #close()} unmaps at once: then every address and every slice of it is invalid, and using one ends
 * the process. Thread-safe, but the caller must ensure that no thread uses the memory at close.
 */
public final class MappedSegment implements AutoCloseable {
  private static final FileAttribute<?> OWNER_ONLY =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));
  private static final long ALIGNMENT = 64;
  private static final ByteBuffer ZEROS = ByteBuffer.allocateDirect(1 << 20).asReadOnlyBuffer();

  private final Path file;
  private final long address;
  private final int size;
  private final AtomicReference<ByteBuffer> mapping;
  private final boolean hasFile;
  private final Consumer<ByteBuffer> unmap;

  private MappedSegment(
      Path file, ByteBuffer mapping, boolean hasFile, Consumer<ByteBuffer> unmap) {
    this.file = file;
    this.hasFile = hasFile;
    this.address = Memory.addressOf(mapping);
    this.size = mapping.capacity();
    this.mapping = new AtomicReference<>(mapping);
    this.unmap = unmap;
  }

  private MappedSegment(Path file, MappedByteBuffer mapping) {
    this(file, mapping, true, Memory::unmap);
  }

  /**
   * Allocates memory of this process alone. The kernel provides pages when they are first touched.
   *
   * @param name the name in messages; there is no such file
   * @param bytes 1 to 2^31 - 64
   * @throws IOException when there is no memory
   */
  static MappedSegment ofPrivateMemory(Path name, long bytes) throws IOException {
    long block;
    try {
      block = Memory.allocate(bytes + ALIGNMENT);
    } catch (OutOfMemoryError e) {
      throw new IOException("no private memory of " + Bytes.text(bytes) + ": " + e.getMessage(), e);
    }
    long aligned = (block + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    ByteBuffer view = Memory.view(null, aligned, Math.toIntExact(bytes));
    return new MappedSegment(name, view, false, gone -> Memory.free(block));
  }

  /**
   * Creates a file of mode 0600, fills it with zeros so that its blocks are allocated, and maps it
   * read-write. After any failure, also of a full file system, no file is left.
   *
   * @param file must not exist yet
   * @param bytes 1 to 2^31 - 64
   */
  public static MappedSegment reserve(Path file, long bytes) throws IOException {
    if (bytes < 1 || bytes > Granules.MAX_BYTES) {
      throw new IllegalArgumentException(
          "a segment of " + bytes + " bytes; allowed are 1 to " + Granules.MAX_BYTES);
    }
    return undisturbed(() -> reserveOnce(file, bytes));
  }

  private static MappedSegment reserveOnce(Path file, long bytes) throws IOException {
    Set<StandardOpenOption> options =
        Set.of(StandardOpenOption.CREATE_NEW, StandardOpenOption.READ, StandardOpenOption.WRITE);
    try (FileChannel channel = FileChannel.open(file, options, OWNER_ONLY)) {
      try {
        fillWithZeros(channel, bytes);
        MappedByteBuffer mapping = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes);
        // The pages exist. This maps them 16 at a time; first writes would map them one by one.
        return new MappedSegment(file, mapping.load());
      } catch (IOException | RuntimeException | Error e) {
        Files.deleteIfExists(file);
        throw e;
      }
    }
  }

  private static void fillWithZeros(FileChannel channel, long bytes) throws IOException {
    long left = bytes;
    while (left > 0) {
      ByteBuffer piece = ZEROS.duplicate();
      piece.limit((int) Math.min(piece.capacity(), left));
      left -= channel.write(piece);
    }
  }

  /**
   * Maps an existing file read-only, with its current length.
   *
   * @throws java.nio.file.NoSuchFileException when the file was deleted by its owner
   */
  public static MappedSegment attach(Path file) throws IOException {
    return undisturbed(() -> attachOnce(file));
  }

  private static MappedSegment attachOnce(Path file) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      long bytes = channel.size();
      if (bytes > Integer.MAX_VALUE) {
        throw new IOException(file + " has " + bytes + " bytes, too many to be mapped at once");
      }
      return new MappedSegment(file, channel.map(FileChannel.MapMode.READ_ONLY, 0, bytes));
    }
  }

  /** Shortens the file; bytes of the mapping after the new end must not be touched any more. */
  void truncate(long bytes) throws IOException {
    undisturbed(
        () -> {
          try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            return channel.truncate(bytes);
          }
        });
  }

  private interface Work<T> {
    T run() throws IOException;
  }

  /**
   * Repeats work whose channel was closed by an interrupt, because other threads use the mapping
   * too. The thread stays interrupted, for the caller's next wait.
   */
  private static <T> T undisturbed(Work<T> work) throws IOException {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return work.run();
        } catch (ClosedByInterruptException e) {
          interrupted |= Thread.interrupted();
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** The address of byte 0 in this process. */
  public long address() {
    return address;
  }

  /** The length of the mapping in bytes. */
  public long size() {
    return size;
  }

  public Path file() {
    return file;
  }

  /**
   * A view of bytes [offset, offset + length), in big-endian order like every new buffer. It is
   * read-only if the mapping is.
   *
   * @throws IndexOutOfBoundsException when the range is not within the segment
   * @throws IllegalStateException after {@link #close()}
   */
  public ByteBuffer slice(long offset, int length) {
    Objects.checkFromIndexSize(offset, length, (long) size);
    ByteBuffer open = mapping.get();
    if (open == null) {
      throw new IllegalStateException(file + " is not mapped any more");
    }
    return open.slice((int) offset, length);
  }

  /**
   * Drops the pages of the mapping from this process, so that they do not count as its resident
   * memory. The file keeps them, and the next access maps them again. Other threads may use the
   * mapping meanwhile. Does nothing in private memory, after {@link #close()} and on a JVM that
   * cannot do it.
   */
  public synchronized void dropPages() {
    if (hasFile && mapping.get() != null) {
      Memory.dropPages(address, size);
    }
  }

  /** Unmaps the memory; the file stays. Closing again does nothing. */
  @Override
  public synchronized void close() {
    ByteBuffer open = mapping.getAndSet(null);
    if (open != null) {
      unmap.accept(open);
    }
  }
}
