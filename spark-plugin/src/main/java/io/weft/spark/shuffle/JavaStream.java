package io.weft.spark.shuffle;

import java.io.IOException;
import java.io.InputStream;
import java.io.NotSerializableException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.OutputStream;
import java.io.StreamCorruptedException;
import java.lang.reflect.Proxy;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.DeserializationStream;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializationDebugger;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.expressions.GenericRow;
import org.apache.spark.sql.catalyst.expressions.GenericRowWithSchema;
import org.apache.spark.sql.types.StructType;
import scala.reflect.ClassTag;

/**
 * Streams of Java's serialization for shuffles with Spark's {@link JavaSerializer}. Two differences
 * save most of its time for small records:
 *
 * <ul>
 *   <li>Numbers, booleans, short strings and byte arrays, and rows of SQL are a tag and their plain
 *       bytes. All other objects are written as usual.
 *   <li>Spark's stream forgets all classes after each 100 objects, so that objects stay
 *       collectable, and then describes classes again. This one also waits for a number of bytes.
 * </ul>
 *
 * <p>A stream is for one thread at a time.
 */
final class JavaStream {
  private static final String RESET = "spark.serializer.objectStreamReset";
  private static final String DEBUG = "spark.serializer.extraDebugInfo";
  private static final int LEAST_OBJECTS = 100;

  /** Longer strings are written as objects, so that a repeated one takes its space once. */
  private static final int MAX_CHARS = 256;

  /** The same for byte arrays. */
  private static final int MAX_BYTES = 1024;

  private static final byte NULL = 0;
  private static final byte OBJECT = 1;
  private static final byte INT = 2;
  private static final byte LONG = 3;
  private static final byte DOUBLE = 4;
  private static final byte FLOAT = 5;
  private static final byte SHORT = 6;
  private static final byte BYTE = 7;
  private static final byte FALSE = 8;
  private static final byte TRUE = 9;
  private static final byte STRING = 10;
  private static final byte BYTES = 11;
  private static final byte ROW = 12;

  /** A row with the schema of the stream's previous row that had one. */
  private static final byte ROW_SAME_SCHEMA = 13;

  private static final byte ROW_NEW_SCHEMA = 14;

  private JavaStream() {}

  /**
   * Whether these streams replace those of a serializer: it is Spark's for Java, and resets as by
   * default. The same in all executors of an application.
   */
  static boolean replaces(Serializer serializer, SparkConf conf) {
    return serializer.getClass() == JavaSerializer.class && !conf.contains(RESET);
  }

  /** Counts what is written to it. */
  abstract static class CountedOutput extends OutputStream {
    /** Bytes written so far. */
    abstract long count();
  }

  /** Writes a stream. */
  static final class Writer extends SerializationStream {
    private final ObjectOutputStream out;
    private final CountedOutput bytes;
    private final long resetBytes;
    private final boolean debug;
    private StructType lastSchema;
    private long resetAt;
    private int objects;

    /**
     * Begins a stream.
     *
     * @param resetBytes about the bytes between two resets
     */
    Writer(CountedOutput bytes, long resetBytes, SparkConf conf) throws IOException {
      this.out = new ObjectOutputStream(bytes);
      this.bytes = bytes;
      this.resetBytes = resetBytes;
      this.debug = conf.getBoolean(DEBUG, true);
      this.resetAt = bytes.count() + resetBytes;
    }

    @Override
    public <T> SerializationStream writeObject(T value, ClassTag<T> tag) {
      try {
        write(value);
        if (objects >= LEAST_OBJECTS && bytes.count() >= resetAt) {
          out.reset();
          objects = 0;
          resetAt = bytes.count() + resetBytes;
        }
        return this;
      } catch (NotSerializableException e) {
        throw SneakyThrow.<RuntimeException>raise(
            debug ? SerializationDebugger.improveException(value, e) : e);
      } catch (IOException e) {
        throw SneakyThrow.<RuntimeException>raise(e);
      }
    }

    private void write(Object value) throws IOException {
      if (value == null) {
        out.writeByte(NULL);
      } else if (value instanceof Number number) {
        writeNumber(number);
      } else if (value instanceof String text && text.length() <= MAX_CHARS) {
        out.writeByte(STRING);
        out.writeUTF(text);
      } else if (value instanceof Boolean truth) {
        out.writeByte(truth ? TRUE : FALSE);
      } else if (value instanceof byte[] array && array.length <= MAX_BYTES) {
        out.writeByte(BYTES);
        out.writeShort(array.length);
        out.write(array);
      } else if (value.getClass() == GenericRowWithSchema.class) {
        writeRow((Row) value, ((GenericRowWithSchema) value).schema());
      } else if (value.getClass() == GenericRow.class) {
        out.writeByte(ROW);
        writeValues((Row) value);
      } else {
        writeAsObject(value);
      }
    }

    private void writeNumber(Number value) throws IOException {
      Class<?> type = value.getClass();
      if (type == Integer.class) {
        out.writeByte(INT);
        out.writeInt(value.intValue());
      } else if (type == Long.class) {
        out.writeByte(LONG);
        out.writeLong(value.longValue());
      } else if (type == Double.class) {
        out.writeByte(DOUBLE);
        out.writeDouble(value.doubleValue());
      } else if (type == Float.class) {
        out.writeByte(FLOAT);
        out.writeFloat(value.floatValue());
      } else if (type == Short.class) {
        out.writeByte(SHORT);
        out.writeShort(value.shortValue());
      } else if (type == Byte.class) {
        out.writeByte(BYTE);
        out.writeByte(value.byteValue());
      } else {
        writeAsObject(value);
      }
    }

    private void writeAsObject(Object value) throws IOException {
      out.writeByte(OBJECT);
      out.writeObject(value);
      objects++;
    }

    private void writeRow(Row row, StructType schema) throws IOException {
      if (schema == lastSchema) {
        out.writeByte(ROW_SAME_SCHEMA);
      } else {
        out.writeByte(ROW_NEW_SCHEMA);
        out.writeObject(schema);
        objects++;
        lastSchema = schema;
      }
      writeValues(row);
    }

    private void writeValues(Row row) throws IOException {
      int length = row.length();
      out.writeInt(length);
      for (int i = 0; i < length; i++) {
        write(row.get(i));
      }
    }

    @Override
    public void flush() {
      try {
        out.flush();
      } catch (IOException e) {
        throw SneakyThrow.<RuntimeException>raise(e);
      }
    }

    @Override
    public void close() {
      try {
        out.close();
      } catch (IOException e) {
        throw SneakyThrow.<RuntimeException>raise(e);
      }
    }
  }

  /** Reads a stream. Throws an {@link java.io.EOFException} at its end. */
  static final class Reader extends DeserializationStream {
    private final ObjectInputStream in;
    private StructType lastSchema;

    /**
     * Begins to read a stream.
     *
     * @param loader of the records' classes
     */
    Reader(InputStream bytes, ClassLoader loader) throws IOException {
      this.in = new LoadingInput(bytes, loader);
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T> T readObject(ClassTag<T> tag) {
      try {
        return (T) read();
      } catch (IOException | ClassNotFoundException e) {
        throw SneakyThrow.<RuntimeException>raise(e);
      }
    }

    private Object read() throws IOException, ClassNotFoundException {
      byte tag = in.readByte();
      return switch (tag) {
        case NULL -> null;
        case OBJECT -> in.readObject();
        case INT -> in.readInt();
        case LONG -> in.readLong();
        case DOUBLE -> in.readDouble();
        case FLOAT -> in.readFloat();
        case SHORT -> in.readShort();
        case BYTE -> in.readByte();
        case FALSE -> Boolean.FALSE;
        case TRUE -> Boolean.TRUE;
        case STRING -> in.readUTF();
        case BYTES -> bytes();
        case ROW -> new GenericRow(values());
        case ROW_SAME_SCHEMA -> row(lastSchema);
        case ROW_NEW_SCHEMA -> row((StructType) in.readObject());
        default -> throw new StreamCorruptedException("a value with the tag " + tag);
      };
    }

    /** Reads the values, which may be rows with other schemas. */
    private Row row(StructType schema) throws IOException, ClassNotFoundException {
      lastSchema = schema;
      return new GenericRowWithSchema(values(), schema);
    }

    private byte[] bytes() throws IOException {
      byte[] array = new byte[in.readUnsignedShort()];
      in.readFully(array);
      return array;
    }

    private Object[] values() throws IOException, ClassNotFoundException {
      Object[] values = new Object[in.readInt()];
      for (int i = 0; i < values.length; i++) {
        values[i] = read();
      }
      return values;
    }

    @Override
    public void close() {
      try {
        in.close();
      } catch (IOException e) {
        throw SneakyThrow.<RuntimeException>raise(e);
      }
    }
  }

  /** Finds classes by the loader of the task, as Spark's serializer does. */
  private static final class LoadingInput extends ObjectInputStream {
    private final ClassLoader loader;

    LoadingInput(InputStream bytes, ClassLoader loader) throws IOException {
      super(bytes);
      this.loader = loader;
    }

    @Override
    protected Class<?> resolveClass(ObjectStreamClass description)
        throws IOException, ClassNotFoundException {
      try {
        return Class.forName(description.getName(), false, loader);
      } catch (ClassNotFoundException e) {
        return super.resolveClass(description); // A primitive type.
      }
    }

    @Override
    @SuppressWarnings("deprecation")
    protected Class<?> resolveProxyClass(String[] names) throws ClassNotFoundException {
      Class<?>[] interfaces = new Class<?>[names.length];
      for (int i = 0; i < names.length; i++) {
        interfaces[i] = Class.forName(names[i], false, loader);
      }
      return Proxy.getProxyClass(loader, interfaces);
    }
  }
}
