package io.weft.spark.values;

import io.weft.memory.Memory;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.function.IntFunction;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.types.StructType;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * Reads the records of {@link ValueWriter} in place. They share nothing with the memory.
 *
 * <p>For one thread at a time.
 */
public final class ValueReader extends AbstractIterator<Tuple2<Object, Object>> {
  /** Longer texts get memory of their own before they are copied. */
  private static final int SCRATCH = 8 << 10;

  private static final int KEPT_SCHEMAS = 64;

  /** Elements that a collection gets memory for before they are read. */
  static final int AHEAD = 1 << 10;

  private final Function<ByteBuffer, ?> format;

  /** Chunks repeat schemas, and rows of several chunks should share one. */
  private final Map<ByteBuffer, StructType> known = new HashMap<>();

  private final byte[] scratch = new byte[SCRATCH];
  private final char[] characters = new char[SCRATCH];
  private StructType[] schemas = new StructType[SchemaTable.SIZE];
  private long at;
  private long end;
  private int depth;

  /** Bytes that no writer wrote. */
  public static final class CorruptValueException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    CorruptValueException(String message) {
      super(message);
    }

    CorruptValueException(Exception cause) {
      super("no value has these bytes: " + cause, cause);
    }
  }

  /**
   * @param schemas reads what the writer's function wrote
   */
  public ValueReader(Function<ByteBuffer, ?> schemas) {
    this.format = schemas;
  }

  /** Begins to read the records of a chunk. */
  public void open(long address, long end) {
    this.at = address;
    this.end = end;
    this.depth = 0;
    this.schemas = new StructType[SchemaTable.SIZE];
  }

  @Override
  public boolean hasNext() {
    return at < end;
  }

  /**
   * Reads a record.
   *
   * @throws CorruptValueException if its bytes are not those of one
   */
  @Override
  public Tuple2<Object, Object> next() {
    if (!hasNext()) {
      throw new NoSuchElementException("all records of this chunk have been read");
    }
    try {
      Object key = read();
      return new Tuple2<>(key, read());
    } catch (CorruptValueException e) {
      throw e;
    } catch (Exception e) {
      // Scala's code throws I/O exceptions undeclared, for a schema. A missing class is no damage.
      if (e instanceof RuntimeException || e instanceof IOException) {
        throw new CorruptValueException(e);
      }
      throw e;
    }
  }

  /** Reads an object of a record. */
  Object read() {
    byte code = getByte();
    return switch (code) {
      case ValueType.NULL -> null;
      case ValueType.LATIN1 -> readLatin1();
      case ValueType.UTF16 -> readUtf16();
      case ValueType.LONG -> getLong();
      case ValueType.INTEGER -> getInt();
      case ValueType.DOUBLE -> Memory.getDouble(advance(Double.BYTES));
      case ValueType.ROW_WITH_SCHEMA -> readRow();
      default -> readRare(code);
    };
  }

  private Object readRare(byte code) {
    ValueType<?> type = ValueType.of(code);
    if (type == null) {
      throw new CorruptValueException("the code " + code);
    }
    enter();
    Object value = type.read().from(this);
    depth--;
    return value;
  }

  private void enter() {
    depth++;
    if (depth > ValueWriter.MAX_DEPTH) {
      throw new CorruptValueException("more than " + ValueWriter.MAX_DEPTH + " nested objects");
    }
  }

  private String readLatin1() {
    int length = getLength(1);
    long from = advance(length);
    byte[] bytes = length <= SCRATCH ? scratch : new byte[length];
    Memory.copyTo(from, bytes, Memory.BYTE_ARRAY, length);
    return new String(bytes, 0, length, StandardCharsets.ISO_8859_1);
  }

  private String readUtf16() {
    int length = getLength(Character.BYTES);
    long bytes = (long) length * Character.BYTES;
    long from = advance(bytes);
    char[] target = length <= SCRATCH ? characters : new char[length];
    Memory.copyTo(from, target, Memory.CHAR_ARRAY, bytes);
    return new String(target, 0, length);
  }

  private GenericRowWithSchema readRow() {
    enter();
    StructType schema = readSchema();
    Object[] fields = readFields();
    depth--;
    return new GenericRowWithSchema(fields, schema);
  }

  private StructType readSchema() {
    int code = getByte();
    int id = code & ~ValueWriter.NEW_SCHEMA & 0xFF;
    if (id >= SchemaTable.SIZE) {
      throw new CorruptValueException("schema " + id);
    }
    if (code < 0) {
      byte[] bytes = new byte[checked(getInt(), 1)];
      Memory.copyTo(advance(bytes.length), bytes, Memory.BYTE_ARRAY, bytes.length);
      schemas[id] = schema(ByteBuffer.wrap(bytes));
    } else if (schemas[id] == null) {
      throw new CorruptValueException("a row before its schema " + id);
    }
    return schemas[id];
  }

  private StructType schema(ByteBuffer bytes) {
    StructType schema = known.get(bytes);
    if (schema == null) {
      if (known.size() == KEPT_SCHEMAS) {
        known.clear();
      }
      schema = (StructType) format.apply(bytes.duplicate());
      known.put(bytes, schema);
    }
    return schema;
  }

  /** Reads a length and as many objects. */
  Object[] readFields() {
    return readObjects(Object[]::new);
  }

  /**
   * As {@link #readFields}, into an array of some class. It grows, because wrong lengths of nested
   * arrays would otherwise add up.
   */
  Object[] readObjects(IntFunction<Object[]> create) {
    int length = getLength(1);
    Object[] objects = create.apply(Math.min(length, AHEAD));
    for (int i = 0; i < length; i++) {
      if (i == objects.length) {
        objects = Arrays.copyOf(objects, (int) Math.min(length, 2L * i));
      }
      objects[i] = read();
    }
    return objects;
  }

  /** The address of the next bytes. */
  long advance(long bytes) {
    if (bytes > end - at) {
      throw new CorruptValueException(bytes + " bytes where " + (end - at) + " are left");
    }
    long start = at;
    at = start + bytes;
    return start;
  }

  byte getByte() {
    return Memory.getByte(advance(1));
  }

  short getShort() {
    return Memory.getShort(advance(Short.BYTES));
  }

  int getInt() {
    return Memory.getInt(advance(Integer.BYTES));
  }

  long getLong() {
    return Memory.getLong(advance(Long.BYTES));
  }

  /**
   * Reads the length of what follows.
   *
   * @param bytes the least bytes of an element, all of which must be there
   */
  int getLength(int bytes) {
    int length = getByte() & 0xFF;
    return checked(length == ValueWriter.LONG_LENGTH ? getInt() : length, bytes);
  }

  private int checked(int length, int bytes) {
    if (length < 0 || (long) length * bytes > end - at) {
      throw new CorruptValueException(length + " elements where " + (end - at) + " bytes are left");
    }
    return length;
  }
}
