package io.weft.spark.shuffle;

import java.io.IOException;
import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.io.OutputStream;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.JavaSerializer;
import org.apache.spark.serializer.SerializationDebugger;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import scala.reflect.ClassTag;

/**
 * A stream of Java's serialization that Spark's {@link JavaSerializer} reads. Spark's own stream
 * forgets all classes after each 100 objects, so that they stay collectable. For small records,
 * most bytes and most time then go into descriptions of classes. This stream also waits for a
 * number of bytes, or for 1000 objects.
 *
 * <p>For one task thread.
 */
final class JavaStream extends SerializationStream {
  private static final String RESET = "spark.serializer.objectStreamReset";
  private static final String DEBUG = "spark.serializer.extraDebugInfo";
  private static final int LEAST_OBJECTS = 100;

  /** The stream holds its objects until it forgets them, and they may be large on the heap. */
  private static final int MOST_OBJECTS = 1000;

  private final ObjectOutputStream out;
  private final CountedOutput bytes;
  private final long resetBytes;
  private final boolean debug;
  private long resetAt;
  private int objects;

  /** Counts what is written to it. */
  abstract static class CountedOutput extends OutputStream {
    /** Bytes written so far. */
    abstract long count();
  }

  /**
   * Begins a stream.
   *
   * @param resetBytes about the bytes between two resets
   */
  JavaStream(CountedOutput bytes, long resetBytes, SparkConf conf) throws IOException {
    this.out = new ObjectOutputStream(bytes);
    this.bytes = bytes;
    this.resetBytes = resetBytes;
    this.debug = conf.getBoolean(DEBUG, true);
    this.resetAt = bytes.count() + resetBytes;
  }

  /** Whether this stream may replace the serializer's: it is Java's, and resets as by default. */
  static boolean replaces(Serializer serializer, SparkConf conf) {
    return serializer.getClass() == JavaSerializer.class && !conf.contains(RESET);
  }

  @Override
  public <T> SerializationStream writeObject(T object, ClassTag<T> tag) {
    try {
      out.writeObject(object);
      objects++;
      if (objects >= MOST_OBJECTS || (objects >= LEAST_OBJECTS && bytes.count() >= resetAt)) {
        out.reset();
        objects = 0;
        resetAt = bytes.count() + resetBytes;
      }
      return this;
    } catch (NotSerializableException e) {
      throw SneakyThrow.<RuntimeException>raise(
          debug ? SerializationDebugger.improveException(object, e) : e);
    } catch (IOException e) {
      throw SneakyThrow.<RuntimeException>raise(e);
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
