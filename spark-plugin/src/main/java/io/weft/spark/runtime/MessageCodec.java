package io.weft.spark.runtime;

import io.weft.spark.config.WeftVersion;
import io.weft.spark.runtime.Messages.ToDriver;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.io.UncheckedIOException;
import org.apache.spark.api.plugin.PluginContext;

/**
 * Encodes messages as bytes. Spark's message threads see only Spark's class path, not the jars of
 * {@code spark.jars}. Their messages must therefore be of classes of the JDK.
 *
 * <p>Stateless.
 */
public final class MessageCodec {
  private static final ObjectInputFilter OURS =
      ObjectInputFilter.Config.createFilter("io.weft.**;java.base/*;!*");

  private MessageCodec() {}

  public static byte[] encode(Serializable message) {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(message);
    } catch (IOException e) {
      throw new UncheckedIOException("Weft cannot encode " + message, e);
    }
    return bytes.toByteArray();
  }

  /**
   * Reads what {@link #encode} wrote.
   *
   * @throws IllegalArgumentException if the argument is anything else
   */
  public static Object decode(Object bytes) {
    if (!(bytes instanceof byte[] encoded)) {
      throw new IllegalArgumentException("Not a message of Weft: " + bytes);
    }
    try (OurClasses in = new OurClasses(new ByteArrayInputStream(encoded))) {
      return in.readObject();
    } catch (IOException | ClassNotFoundException e) {
      throw new IllegalArgumentException(
          "A message between executor and driver cannot be read; is it the same Weft on both sides?"
              + " This is "
              + WeftVersion.current(),
          e);
    }
  }

  /**
   * Asks the driver's Weft and waits for its answer, at most for {@code spark.rpc.askTimeout}.
   *
   * @throws Exception if there is no answer; the driver may have received the message anyway
   */
  static Object ask(PluginContext driver, ToDriver message) throws Exception {
    return decode(driver.ask(encode(message)));
  }

  /** Sends a message without an answer to the driver's Weft. */
  static void send(PluginContext driver, ToDriver message) throws IOException {
    driver.send(encode(message));
  }

  private static final class OurClasses extends ObjectInputStream {
    OurClasses(InputStream in) throws IOException {
      super(in);
      setObjectInputFilter(OURS);
    }

    @Override
    protected Class<?> resolveClass(ObjectStreamClass description)
        throws IOException, ClassNotFoundException {
      try {
        return Class.forName(description.getName(), false, MessageCodec.class.getClassLoader());
      } catch (ClassNotFoundException e) {
        return super.resolveClass(description);
      }
    }
  }
}
