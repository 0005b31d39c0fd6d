package io.weft.spark.values;

import io.weft.memory.Memory;
import io.weft.spark.values.ValueType.RefusedException;
import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;

/**
 * Writes records of known objects straight into memory. It refuses other records, which then need
 * Java's serialization: those with objects of unknown classes, and those that have one mutable or
 * large object twice. Java's serialization would keep it one object.
 *
 * <p>For one task thread.
 */
public final class ValueWriter {
  /** The result for a record that is longer than its room. */
  public static final long NO_ROOM = -1;

  /** The result for a record that needs Java's serialization. */
  public static final long UNKNOWN = -2;

  static final int MAX_DEPTH = 64;
  static final int LONG_LENGTH = 255;
  static final int NEW_SCHEMA = 0x80;
  private static final int LENGTH_BYTES = 1 + Integer.BYTES;

  /** Texts of as many characters are one object for Java's serialization and thus written once. */
  private static final int LONG_TEXT = 128;

  /** Objects of as many bytes are not written again for the next record. */
  private static final int LARGE = 1024;

  private static final int FEW = 16;

  private final SchemaTable schemas;

  /** Objects of the record that it must not have twice: the first few, and all others. */
  private final Object[] few = new Object[FEW];

  private Set<Object> more = newSet();
  private int objects;

  private Object largeBefore;
  private Object large;
  private int depth;
  private int defined;
  private long at;
  private long limit;

  /**
   * @param schemas writes the schema of rows
   */
  public ValueWriter(Function<Object, ByteBuffer> schemas) {
    this.schemas = new SchemaTable(schemas);
  }

  /**
   * Writes a record.
   *
   * @param defined the schemas that the chunk has before the record, 0 at its beginning
   * @return the address behind it, {@link #NO_ROOM} or {@link #UNKNOWN}
   */
  public long write(long address, long end, int defined, Object key, Object value) {
    this.at = address;
    this.limit = end;
    this.defined = defined;
    this.depth = 0;
    this.large = null;
    forgetObjects();
    try {
      write(key);
      write(value);
      largeBefore = large;
      return at;
    } catch (RefusedException e) {
      return e.result();
    }
  }

  /** The schemas that the chunk has after the last record. */
  public int defined() {
    return defined;
  }

  /** Writes an object of a record. */
  void write(Object value) throws RefusedException {
    if (value == null) {
      putByte(ValueType.NULL);
    } else if (value.getClass() == String.class) {
      writeText((String) value);
    } else if (value.getClass() == Long.class) {
      long to = advance(1 + Long.BYTES);
      Memory.putByte(to, ValueType.LONG);
      Memory.putLong(to + 1, (Long) value);
    } else if (value.getClass() == Integer.class) {
      long to = advance(1 + Integer.BYTES);
      Memory.putByte(to, ValueType.INTEGER);
      Memory.putInt(to + 1, (Integer) value);
    } else if (value.getClass() == Double.class) {
      long to = advance(1 + Double.BYTES);
      Memory.putByte(to, ValueType.DOUBLE);
      Memory.putDouble(to + 1, (Double) value);
    } else if (value.getClass() == GenericRowWithSchema.class) {
      writeRow((GenericRowWithSchema) value);
    } else {
      writeRare(value);
    }
  }

  private void writeRare(Object value) throws RefusedException {
    ValueType<Object> type = ValueType.of(value.getClass());
    if (type == null) {
      throw RefusedException.unknown();
    }
    Object outside = large;
    long start = enter(value);
    putByte((byte) type.code());
    type.write().to(this, value);
    leave(value, start, outside);
  }

  /** Begins an object that may have others in it. Returns its address. */
  private long enter(Object value) throws RefusedException {
    depth++;
    if (depth > MAX_DEPTH || value == largeBefore) {
      throw RefusedException.unknown();
    }
    return at;
  }

  /**
   * Ends an object. If many small objects make it large, the next record must not have it.
   *
   * @param outside the large object when it began
   */
  private void leave(Object value, long start, Object outside) {
    depth--;
    if (at - start >= LARGE && large == outside) {
      large = value;
    }
  }

  private void writeText(String text) throws RefusedException {
    int length = text.length();
    long bytes = Memory.stringBytes(text);
    if (length >= LONG_TEXT) {
      once(text, bytes);
    }
    long to = reserve(1 + LENGTH_BYTES + bytes);
    Memory.putByte(to, bytes == length ? ValueType.LATIN1 : ValueType.UTF16);
    to = putLength(to + 1, length);
    Memory.copyString(text, to);
    at = to + bytes;
  }

  private void writeRow(GenericRowWithSchema row) throws RefusedException {
    once(row.values(), 0);
    Object outside = large;
    long start = enter(row);
    int id = schemas.id(row.schema());
    putByte(ValueType.ROW_WITH_SCHEMA);
    if ((defined & 1 << id) != 0) {
      putByte((byte) id);
    } else {
      putByte((byte) (id | NEW_SCHEMA));
      byte[] schema = schemas.bytes(id);
      putInt(schema.length);
      Memory.copyFrom(schema, Memory.BYTE_ARRAY, advance(schema.length), schema.length);
      defined |= 1 << id;
    }
    int fields = row.length();
    putLength(fields);
    for (int i = 0; i < fields; i++) {
      write(row.get(i));
    }
    leave(row, start, outside);
  }

  /**
   * Refuses the record if it has this object already, or if the record before had it and it is
   * large: Java's serialization may refer to it.
   */
  void once(Object object, long bytes) throws RefusedException {
    if (bytes >= LARGE) {
      if (object == largeBefore) {
        throw RefusedException.unknown();
      }
      large = object;
    }
    if (objects == FEW) {
      if (!more.add(object)) {
        throw RefusedException.unknown();
      }
    }
    for (int i = 0; i < objects; i++) {
      if (few[i] == object) {
        throw RefusedException.unknown();
      }
    }
    if (objects < FEW) {
      few[objects++] = object;
    }
  }

  /** As {@link #once} for an array, of which empty ones are often shared and never change. */
  void onceUnlessEmpty(Object array, int length, long bytes) throws RefusedException {
    if (length > 0) {
      once(array, bytes);
    }
  }

  private void forgetObjects() {
    objects = 0;
    if (!more.isEmpty()) {
      more = newSet();
    }
  }

  private static Set<Object> newSet() {
    return Collections.newSetFromMap(new IdentityHashMap<>());
  }

  /** Checks that bytes fit, without taking them. */
  private long reserve(long bytes) throws RefusedException {
    if (bytes > limit - at) {
      throw RefusedException.noRoom();
    }
    return at;
  }

  /** The address of the next bytes. */
  long advance(long bytes) throws RefusedException {
    long start = reserve(bytes);
    at = start + bytes;
    return start;
  }

  void putByte(byte value) throws RefusedException {
    Memory.putByte(advance(1), value);
  }

  void putShort(short value) throws RefusedException {
    Memory.putShort(advance(Short.BYTES), value);
  }

  void putInt(int value) throws RefusedException {
    Memory.putInt(advance(Integer.BYTES), value);
  }

  void putLong(long value) throws RefusedException {
    Memory.putLong(advance(Long.BYTES), value);
  }

  void putLength(int length) throws RefusedException {
    at = putLength(reserve(LENGTH_BYTES), length);
  }

  private static long putLength(long to, int length) {
    if (length < LONG_LENGTH) {
      Memory.putByte(to, (byte) length);
      return to + 1;
    }
    Memory.putByte(to, (byte) LONG_LENGTH);
    Memory.putInt(to + 1, length);
    return to + LENGTH_BYTES;
  }
}
