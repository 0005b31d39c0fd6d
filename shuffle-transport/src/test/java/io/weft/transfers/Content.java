package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.SplittableRandom;
import org.assertj.core.api.Assertions;

/** Arrays whose bytes follow from a seed, and waits for events. */
final class Content {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private Content() {}

  static TypedBuffer of(BufferShape shape, long seed) {
    ByteBuffer bytes = ByteBuffer.allocateDirect((int) shape.bytes());
    SplittableRandom random = new SplittableRandom(seed);
    while (bytes.hasRemaining()) {
      bytes.put((byte) random.nextInt());
    }
    return TypedBuffer.wrap(bytes.clear(), shape.type());
  }

  static TypedBuffer ints(int count, long seed) {
    return of(BufferShape.of(DataType.INT32, count), seed);
  }

  /** Writes what {@link #check} expects. */
  static void fill(TypedBuffer buffer, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (long at = 0; at < buffer.bytes(); at++) {
      Memory.putByte(buffer.address() + at, (byte) random.nextInt());
    }
  }

  static void check(TypedBuffer buffer, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    for (long at = 0; at < buffer.bytes(); at++) {
      byte expected = (byte) random.nextInt();
      byte actual = Memory.getByte(buffer.address() + at);
      if (expected != actual) {
        Assertions.fail(
            "byte %d of %s is %d, of seed %d it is %d", at, buffer, actual, seed, expected);
      }
    }
  }

  static void await(Event event) {
    event.await(Deadline.after(TIMEOUT));
  }

  static void awaitRecorded(Event event) {
    event.awaitRecorded(Deadline.after(TIMEOUT));
  }

  /** Waits for the end. Returns whether it is a success. */
  static boolean succeeds(Event event) {
    try {
      await(event);
      return true;
    } catch (EventFailedException e) {
      return false;
    }
  }

  /** Waits for the end, which must be a failure. */
  static Throwable failure(Event event) {
    Throwable thrown = Assertions.catchThrowable(() -> await(event));
    assertThat(thrown).as("the end of %s", event.what()).isInstanceOf(EventFailedException.class);
    return event.failure().orElseThrow();
  }
}
