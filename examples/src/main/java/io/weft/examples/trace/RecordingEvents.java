package io.weft.examples.trace;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Arrays;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/**
 * The events of Weft in a file of Java Flight Recorder.
 *
 * @param file the recording
 */
record RecordingEvents(Path file) {
  private static final String PREFIX = "weft.";

  /** The event that names the executor of a recording. */
  static final String EXECUTOR = PREFIX + "Executor";

  private static final byte[] MAGIC = "FLR\0".getBytes(StandardCharsets.ISO_8859_1);

  /** Takes an event. */
  @FunctionalInterface
  interface Sink {
    void take(RecordedEvent event) throws IOException;
  }

  /**
   * Checks the first bytes of a file.
   *
   * @throws IOException if it cannot be read or is no recording
   */
  static RecordingEvents of(Path file) throws IOException {
    if (!Files.isRegularFile(file)) {
      throw new IOException(file + " is no file");
    }
    try (InputStream in = Files.newInputStream(file)) {
      byte[] first = in.readNBytes(MAGIC.length);
      if (first.length == 0) {
        throw new IOException(
            file + " is empty: its executor still runs, or was killed before it wrote the file");
      }
      if (!Arrays.equals(first, MAGIC)) {
        throw new IOException(file + " is no recording of Java Flight Recorder");
      }
    } catch (FileSystemException e) {
      throw new IOException(file + " cannot be read: " + e, e);
    }
    return new RecordingEvents(file);
  }

  /**
   * Passes each event of Weft, one at a time, in the order of the file.
   *
   * @return whether the file is complete. If it is cut off, the events before are passed
   * @throws IOException if the sink throws it
   */
  boolean forEach(Sink sink) throws IOException {
    RecordingFile recording;
    try {
      recording = new RecordingFile(file);
    } catch (IOException | RuntimeException e) {
      return false;
    }
    try (recording) {
      for (RecordedEvent event = next(recording); event != null; event = next(recording)) {
        if (event.getEventType().getName().startsWith(PREFIX)) {
          sink.take(event);
        }
      }
      return !recording.hasMoreEvents();
    }
  }

  /** Returns null at the end, and where the file is cut off. */
  private static RecordedEvent next(RecordingFile recording) {
    try {
      return recording.hasMoreEvents() ? recording.readEvent() : null;
    } catch (IOException | RuntimeException e) {
      return null;
    }
  }

  /** Nanoseconds since 1970 of an event's start, by the clock of its host. */
  static long start(RecordedEvent event) {
    return nanos(event.getStartTime());
  }

  /** As {@link #start}, of its end. */
  static long end(RecordedEvent event) {
    return nanos(event.getEndTime());
  }

  private static long nanos(Instant time) {
    return Math.addExact(Math.multiplyExact(time.getEpochSecond(), 1_000_000_000L), time.getNano());
  }

  /** The name of an event's type without the prefix, for example {@code Read}. */
  static String name(RecordedEvent event) {
    return event.getEventType().getName().substring(PREFIX.length());
  }
}
