package io.weft.memory;

import java.lang.reflect.Field;
import java.lang.reflect.InaccessibleObjectException;
import java.lang.reflect.Method;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import sun.misc.Unsafe;

/**
 * Raw access to off-heap addresses. No method checks bounds: callers check a range once, where an
 * address enters (see {@link MappedSegment}), and then use it freely. A wrong address ends the
 * process.
 *
 * <p>Values are in the byte order of the machine. Plain access needs no alignment. The acquire,
 * release and atomic operations need the natural alignment of their type (4 or 8 bytes). They order
 * memory between threads, and between processes that map the same file.
 *
 * <p>Thread-safe: stateless.
 */
public final class Memory {
  /** Offset of element 0 of a byte array, for {@link #copyFrom} and {@link #copyTo}. */
  public static final long BYTE_ARRAY = Unsafe.ARRAY_BYTE_BASE_OFFSET;

  /** Offset of element 0 of a short array. */
  public static final long SHORT_ARRAY = Unsafe.ARRAY_SHORT_BASE_OFFSET;

  /** Offset of element 0 of a char array. */
  public static final long CHAR_ARRAY = Unsafe.ARRAY_CHAR_BASE_OFFSET;

  /** Offset of element 0 of an int array. */
  public static final long INT_ARRAY = Unsafe.ARRAY_INT_BASE_OFFSET;

  /** Offset of element 0 of a long array. */
  public static final long LONG_ARRAY = Unsafe.ARRAY_LONG_BASE_OFFSET;

  /** Offset of element 0 of a float array. */
  public static final long FLOAT_ARRAY = Unsafe.ARRAY_FLOAT_BASE_OFFSET;

  /** Offset of element 0 of a double array. */
  public static final long DOUBLE_ARRAY = Unsafe.ARRAY_DOUBLE_BASE_OFFSET;

  /**
   * The garbage collector cannot stop a thread within one native copy, so long copies are split.
   */
  private static final long PIECE_BYTES = 1L << 20;

  private static final int SHORT_BYTES = 128;

  private static final Unsafe UNSAFE = unsafe();
  private static final long ADDRESS_FIELD = bufferField("address");
  private static final long CAPACITY_FIELD = bufferField("capacity");
  private static final ByteBuffer NO_BYTES = ByteBuffer.allocateDirect(0);
  private static final long KEPT_FIELD = keptField();
  private static final long STRING_FIELD = stringField();
  private static final Method UNLOAD = unloadMethod();

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

  /** The offset of the field with which a direct view keeps another object reachable. */
  private static long keptField() {
    try {
      return UNSAFE.objectFieldOffset(NO_BYTES.getClass().getDeclaredField("att"));
    } catch (NoSuchFieldException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** The offset of a string's bytes: one for each character if all are of Latin-1, or two. */
  private static long stringField() {
    try {
      return UNSAFE.objectFieldOffset(String.class.getDeclaredField("value"));
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

  /** Copies word by word: for short ranges this is faster than the call of the native copy. */
  private static void copyShort(Object from, long source, Object to, long target, int bytes) {
    int done = 0;
    for (; done <= bytes - Long.BYTES; done += Long.BYTES) {
      UNSAFE.putLong(to, target + done, UNSAFE.getLong(from, source + done));
    }
    for (; done < bytes; done++) {
      UNSAFE.putByte(to, target + done, UNSAFE.getByte(from, source + done));
    }
  }

  /** Copies the last piece first, because the target overlaps the end of the source. */
  private static void copyBackwards(long from, long to, long bytes) {
    long left = bytes;
    while (left > 0) {
      long piece = Math.min(PIECE_BYTES, left);
      left -= piece;
      UNSAFE.copyMemory(from + left, to + left, piece);
    }
  }

  /**
   * Copies bytes from a primitive array or, with base null, from an address.
   *
   * @param base a primitive array, or null
   * @param offset the offset within base as Unsafe counts it (see {@link #BYTE_ARRAY}), or an
   *     address
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

  /** Copies bytes into a primitive array or, with base null, to an address. */
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

  /** Bytes that {@link #copyString} copies: one for each Latin-1 character, or two for each. */
  public static int stringBytes(String text) {
    return ((byte[]) UNSAFE.getObject(text, STRING_FIELD)).length;
  }

  /** Copies the characters of a string as Java stores them, without a copy on the heap. */
  public static void copyString(String text, long to) {
    byte[] bytes = (byte[]) UNSAFE.getObject(text, STRING_FIELD);
    copyFrom(bytes, BYTE_ARRAY, to, bytes.length);
  }

  /** Fills bytes with one value. */
  public static void setMemory(long address, long bytes, byte value) {
    for (long done = 0; done < bytes; done += PIECE_BYTES) {
      UNSAFE.setMemory(address + done, Math.min(PIECE_BYTES, bytes - done), value);
    }
  }

  /**
   * Reads an int; everything its writer did before {@link #putIntRelease} is visible afterwards.
   */
  public static int getIntAcquire(long address) {
    return UNSAFE.getIntVolatile(null, address);
  }

  /** Writes an int after all earlier writes of this thread. */
  public static void putIntRelease(long address, int value) {
    UNSAFE.putOrderedInt(null, address, value);
  }

  /**
   * Reads a long; everything its writer did before {@link #putLongRelease} is visible afterwards.
   */
  public static long getLongAcquire(long address) {
    return UNSAFE.getLongVolatile(null, address);
  }

  /** Writes a long after all earlier writes of this thread. */
  public static void putLongRelease(long address, long value) {
    UNSAFE.putOrderedLong(null, address, value);
  }

  /**
   * The address of byte 0 of a direct buffer; valid as long as the buffer is reachable and open.
   */
  public static long addressOf(ByteBuffer direct) {
    if (!direct.isDirect()) {
      throw new IllegalArgumentException("a heap buffer has no address: " + direct);
    }
    return UNSAFE.getLong(direct, ADDRESS_FIELD);
  }

  /**
   * Points a direct buffer at other memory, from position 0 to the limit, so that channels read and
   * write it without a copy. The buffer must not be used after that memory is freed.
   *
   * @param view a direct buffer that only the caller uses, such as one of capacity 0. Its earlier
   *     memory is freed with it.
   */
  public static void aim(ByteBuffer view, long address, int bytes) {
    if (!view.isDirect()) {
      throw new IllegalArgumentException("a heap buffer cannot point at other memory: " + view);
    }
    UNSAFE.putLong(view, ADDRESS_FIELD, address);
    UNSAFE.putInt(view, CAPACITY_FIELD, bytes);
    view.clear();
  }

  /**
   * A direct buffer over other memory, from position 0 to the limit. It keeps the owner reachable,
   * as do its slices and duplicates.
   *
   * @param owner the owner of the memory, which frees it when unreachable; null for none
   */
  public static ByteBuffer view(Object owner, long address, int bytes) {
    ByteBuffer view = NO_BYTES.duplicate();
    UNSAFE.putObject(view, KEPT_FIELD, owner);
    aim(view, address, bytes);
    return view;
  }

  /**
   * Allocates memory of the C library, with undefined contents.
   *
   * @throws OutOfMemoryError when there is none
   */
  public static long allocate(long bytes) {
    return UNSAFE.allocateMemory(bytes);
  }

  /** Frees the memory of {@link #allocate}. */
  public static void free(long address) {
    UNSAFE.freeMemory(address);
  }

  /**
   * Unmaps or frees a direct buffer at once, before it is collected. The caller must be its last
   * user.
   */
  public static void unmap(ByteBuffer buffer) {
    UNSAFE.invokeCleaner(buffer);
  }

  /**
   * Drops the pages of a shared mapping of a file from this process; the file keeps them. Memory
   * without a file would lose its contents.
   */
  static void dropPages(long address, long bytes) {
    if (UNLOAD != null) {
      try {
        UNLOAD.invoke(null, address, false, bytes);
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("pages were not dropped", e);
      }
    }
  }

  /** Whether {@link #dropPages} works: Java offers it to its own classes only. */
  static boolean dropsPages() {
    return UNLOAD != null;
  }

  private static Method unloadMethod() {
    try {
      Method unload =
          Class.forName("java.nio.MappedMemoryUtils")
              .getDeclaredMethod("unload", long.class, boolean.class, long.class);
      unload.setAccessible(true);
      return unload;
    } catch (ReflectiveOperationException | InaccessibleObjectException e) {
      // Spark opens java.nio; without that, pages stay.
      return null;
    }
  }
}
