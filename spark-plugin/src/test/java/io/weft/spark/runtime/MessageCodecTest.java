package io.weft.spark.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.spark.runtime.Messages.Hello;
import io.weft.spark.runtime.Messages.Verdict;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectOutputStream;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class MessageCodecTest {
  @Test
  void roundTrip() {
    Hello hello = new Hello("3", "here", "0.1.0");
    assertThat(MessageCodec.decode(MessageCodec.encode(hello))).isEqualTo(hello);
  }

  /** Spark's message threads do not see the jars of spark.jars, so messages must be JDK classes. */
  @Test
  void isSentAsBytesAndReadOnAnyThread() {
    byte[] bytes = MessageCodec.encode(Verdict.WELCOME);
    Thread thread = Thread.currentThread();
    ClassLoader before = thread.getContextClassLoader();
    thread.setContextClassLoader(ClassLoader.getPlatformClassLoader());
    try {
      assertThat(MessageCodec.decode(bytes)).isEqualTo(Verdict.WELCOME);
    } finally {
      thread.setContextClassLoader(before);
    }
  }

  @Test
  void refusesOtherClasses() throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
      out.writeObject(new org.apache.spark.SparkConf(false));
    }
    assertThatThrownBy(() -> MessageCodec.decode(bytes.toByteArray()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cannot be read");
    assertThatThrownBy(() -> MessageCodec.decode(new AtomicInteger()))
        .hasMessageContaining("Not a message");
  }
}
