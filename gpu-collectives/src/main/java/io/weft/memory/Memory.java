package io.weft.memory;

import java.lang.reflect.Field;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import sun.misc.Unsafe;

/**
 * Raw access to off-heap addresses. Nothing here checks bounds: callers check a range once, at the
 * boundary where an address enters (see {@link MappedSegment}), and then run over it. A wrong
 * address ends the process.
 *
 * <p>Values are in the byte order of the machine. Plain access needs no alignment; the acquire,
 * release and atomic operations need the natural alignment of their type (4 or 8 bytes) and order
 * memory between threads as well as between processes that map the same file.
 *
 * <p>Thread-safety: stateless.
 */
public final class Memory {
  /** Offset of element 0 of a byte array, for {@link #copyFrom} and {@link #copyTo}. */
  public static final long BYTE_ARRAY = Unsafe.ARRAY_BYTE_BASE_OFFSET;

  /** Offset of element 0 of a short array. */
  public static final long SHORT_ARRAY = Unsafe.ARRAY_SHORT_BASE_OFFSET;

  /** Offset of element 0 of an int array. */
  public static final long INT_ARRAY = Unsafe.ARRAY_INT_BASE_OFFSET;

  /** Offset of element 0 of a long array. */
  public static final long LONG_ARRAY = Unsafe.ARRAY_LONG_BASE_OFFSET;

  /** Offset of element 0 of a float array. */
  public static final long FLOAT_ARRAY = Unsafe.ARRAY_FLOAT_BASE_OFFSET;

  /** Offset of element 0 of a double array. */
  public static final long DOUBLE_ARRAY = Unsafe.ARRAY_DOUBLE_BASE_OFFSET;

  /** A thread cannot stop for the collector inside one native copy, so long ones go in pieces. */
  private static final long PIECE_BYTES = 1L << 20;

  private static final int SHORT_BYTES = 64;

  private static final Unsafe UNSAFE = unsafe();
  private static final long ADDRESS_FIELD = bufferField("address");
  private static final long CAPACITY_FIELD = bufferField("capacity");
  private static final ByteBuffer NO_BYTES = ByteBuffer.allocateDirect(0);
  private static final long KEPT_FIELD = keptField();

  private Memory() {}

  private static Unsafe unsafe() {
    try {
      Field field = Unsafe.class.getDeclaredField("theUnsafe");
      field.setAccessible(true);
      return (Unsafe) field.get(null);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  private static long bufferField(String name) {
    try {
      return UNSAFE.objectFieldOffset(Buffer.class.getDeclaredField(name));
    } catch (NoSuchFieldException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** What a direct buffer that owns nothing keeps reachable. */
  private static long keptField() {
    try {
      return UNSAFE.objectFieldOffset(NO_BYTES.getClass().getDeclaredField("att"));
    } catch (NoSuchFieldException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  public static byte getByte(long address) {
    return UNSAFE.getByte(address);
  }

  public static void putByte(long address, byte value) {
    UNSAFE.putByte(address, value);
  }

  public static short getShort(long address) {
    return UNSAFE.getShort(address);
  }

  public static void putShort(long address, short value) {
    UNSAFE.putShort(address, value);
  }

  public static int getInt(long address) {
    return UNSAFE.getInt(address);
  }

  public static void putInt(long address, int value) {
    UNSAFE.putInt(address, value);
  }

  public static long getLong(long address) {
    return UNSAFE.getLong(address);
  }

  public static void putLong(long address, long value) {
    UNSAFE.putLong(address, value);
  }

  public static float getFloat(long address) {
    return UNSAFE.getFloat(address);
  }

  public static void putFloat(long address, float value) {
    UNSAFE.putFloat(address, value);
  }

  public static double getDouble(long address) {
    return UNSAFE.getDouble(address);
  }

  public static void putDouble(long address, double value) {
    UNSAFE.putDouble(address, value);
  }

  /** Copies bytes between addresses; the two ranges may overlap. */
  public static void copy(long from, long to, long bytes) {
    if (bytes <= SHORT_BYTES && !(from < to && to - from < bytes)) {
      copyShort(null, from, null, to, (int) bytes);
      return;
    }
    if (from < to && to - from < bytes) {
      copyBackwards(from, to, bytes);
      return;
    }
    for (long done = 0; done < bytes; done += PIECE_BYTES) {
      UNSAFE.copyMemory(from + done, to + done, Math.min(PIECE_BYTES, bytes - done));
    }
  }

  /** Word by word: for so little the way to the copying code of the machine is the longer part. */
  private static void copyShort(Object from, long source, Object to, long target, int bytes) {
    int done = 0;
    for (; done <= bytes - Long.BYTES; done += Long.BYTES) {
      UNSAFE.putLong(to, target + done, UNSAFE.getLong(from, source + done));
    }
    for (; done < bytes; done++) {
      UNSAFE.putByte(to, target + done, UNSAFE.getByte(from, source + done));
    }
  }

  /** The target overlaps the end of the source: the last piece has to go first. */
  private static void copyBackwards(long from, long to, long bytes) {
    long left = bytes;
    while (left > 0) {
      long piece = Math.min(PIECE_BYTES, left);
      left -= piece;
      UNSAFE.copyMemory(from + left, to + left, piece);
    }
  }

  /**
   * Copies bytes out of a primitive array (or, with base null, from an address).
   *
   * @param base a primitive array, or null
   * @param offset place within base as Unsafe counts it (see {@link #BYTE_ARRAY}), or an address
   */
  public static void copyFrom(Object base, long offset, long to, long bytes) {
    if (bytes <= SHORT_BYTES) {
      copyShort(base, offset, null, to, (int) bytes);
      return;
    }
    for (long done = 0; done < bytes; done += PIECE_BYTES) {
      UNSAFE.copyMemory(base, offset + done, null, to + done, Math.min(PIECE_BYTES, bytes - done));
    }
  }

  /** Copies bytes into a primitive array (or, with base null, to an address). */
  public static void copyTo(long from, Object base, long offset, long bytes) {
    if (bytes <= SHORT_BYTES) {
      copyShort(null, from, base, offset, (int) bytes);
      return;
    }
    for (long done = 0; done < bytes; done += PIECE_BYTES) {
      UNSAFE.copyMemory(
          null, from + done, base, offset + done, Math.min(PIECE_BYTES, bytes - done));
    }
  }

  /** Fills bytes with one value. */
  public static void setMemory(long address, long bytes, byte value) {
    for (long done = 0; done < bytes; done += PIECE_BYTES) {
      UNSAFE.setMemory(address + done, Math.min(PIECE_BYTES, bytes - done), value);
    }
  }

  /** Reads an int; what its writer did before {@link #putIntRelease} is visible afterwards. */
  public static int getIntAcquire(long address) {
    return UNSAFE.getIntVolatile(null, address);
  }

  /** Writes an int after everything this thread wrote before. */
  public static void putIntRelease(long address, int value) {
    UNSAFE.putOrderedInt(null, address, value);
  }

  /** Reads a long; what its writer did before {@link #putLongRelease} is visible afterwards. */
  public static long getLongAcquire(long address) {
    return UNSAFE.getLongVolatile(null, address);
  }

  /** Writes a long after everything this thread wrote before. */
  public static void putLongRelease(long address, long value) {
    UNSAFE.putOrderedLong(null, address, value);
  }

  /** Writes a long in the one order that all threads agree on; dearer than release. */
  public static void putLongVolatile(long address, long value) {
    UNSAFE.putLongVolatile(null, address, value);
  }

  /** Sets an int if it has the expected value; orders memory like a volatile access. */
  public static boolean compareAndSetInt(long address, int expected, int value) {
    return UNSAFE.compareAndSwapInt(null, address, expected, value);
  }

  /** Sets a long if it has the expected value; orders memory like a volatile access. */
  public static boolean compareAndSetLong(long address, long expected, long value) {
    return UNSAFE.compareAndSwapLong(null, address, expected, value);
  }

  /** Adds to a long and returns what it was before; orders memory like a volatile access. */
  public static long getAndAddLong(long address, long delta) {
    return UNSAFE.getAndAddLong(null, address, delta);
  }

  /** Address of byte 0 of a direct buffer; valid as long as the buffer is reachable and open. */
  public static long addressOf(ByteBuffer direct) {
    if (!direct.isDirect()) {
      throw new IllegalArgumentException("a heap buffer has no address: " + direct);
    }
    return UNSAFE.getLong(direct, ADDRESS_FIELD);
  }

  /**
   * Makes a direct buffer show other memory, from position 0 to the limit, so that channels read
   * and write it without a copy. The buffer must not be used once that memory is gone.
   *
   * @param view a direct buffer of its user's own, such as of capacity 0; what it showed before is
   *     freed with it
   */
  public static void aim(ByteBuffer view, long address, int bytes) {
    if (!view.isDirect()) {
      throw new IllegalArgumentException("a heap buffer cannot show other memory: " + view);
    }
    UNSAFE.putLong(view, ADDRESS_FIELD, address);
    UNSAFE.putInt(view, CAPACITY_FIELD, bytes);
    view.clear();
  }

  /**
   * A direct buffer that shows other memory, from position 0 to the limit, and keeps its owner
   * reachable (slices and duplicates of it do as well).
   *
   * @param owner whose memory is there as long as it is reachable; null when nobody's is
   */
  public static ByteBuffer view(Object owner, long address, int bytes) {
    ByteBuffer view = NO_BYTES.duplicate();
    UNSAFE.putObject(view, KEPT_FIELD, owner);
    aim(view, address, bytes);
    return view;
  }

  /**
   * Takes memory from the C library; what is in it is undefined.
   *
   * @throws OutOfMemoryError when there is none
   */
  public static long allocate(long bytes) {
    return UNSAFE.allocateMemory(bytes);
  }

  /** Gives back what {@link #allocate} took. */
  public static void free(long address) {
    UNSAFE.freeMemory(address);
  }

  /**
   * Unmaps or frees a direct buffer at once instead of when it is collected. The caller must be its
   * last user.
   */
  public static void unmap(ByteBuffer buffer) {
    UNSAFE.invokeCleaner(buffer);
  }
}
