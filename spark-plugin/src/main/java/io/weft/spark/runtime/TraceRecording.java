package io.weft.spark.runtime;

import io.weft.device.probe.JfrModule;
import io.weft.spark.config.TraceSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import jdk.jfr.Recording;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The recording of an executor's events by Java Flight Recorder, which {@code
 * spark.weft.trace.folder} requests. It is written when it is closed, or when the JVM ends. For one
 * thread.
 */
final class TraceRecording implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TraceRecording.class);

  private static final List<String> EVENTS =
      List.of(
          "weft.Executor",
          "weft.Write",
          "weft.Publish",
          "weft.Spill",
          "weft.Read",
          "weft.Fetch",
          "weft.Wait",
          "weft.Serve",
          "weft.Collective",
          "weft.Transfer");

  private final Recording recording;
  private final Path file;

  private TraceRecording(Recording recording, Path file) {
    this.recording = recording;
    this.file = file;
  }

  /** Starts the recording if the settings request one. A failure is logged; tasks can run. */
  static Optional<TraceRecording> start(SparkConf conf, String executorId) {
    String folder = TraceSettings.FOLDER.get(conf);
    if (folder.isEmpty()) {
      return Optional.empty();
    }
    if (!JfrModule.PRESENT) {
      LOG.warn("Executor {} records no events: this Java has no module jdk.jfr", executorId);
      return Optional.empty();
    }
    String name = conf.get("spark.app.id", "local") + "-" + executorId;
    try {
      Path file = Files.createDirectories(Path.of(folder)).resolve(name + ".jfr");
      return Optional.of(new TraceRecording(started(name, file, conf), file));
    } catch (IOException | RuntimeException e) {
      LOG.warn("Executor {} records no events in {}: {}", executorId, folder, e.toString());
      return Optional.empty();
    }
  }

  private static Recording started(String name, Path file, SparkConf conf) throws IOException {
    Recording recording = new Recording();
    try {
      recording.setName(name);
      recording.setToDisk(true);
      recording.setDumpOnExit(true);
      recording.setDestination(file);
      recording.setMaxSize(TraceSettings.MAX_SIZE.get(conf));
      EVENTS.forEach(recording::enable);
      recording.start();
      return recording;
    } catch (IOException | RuntimeException e) {
      recording.close();
      throw e;
    }
  }

  /** Writes the file. */
  @Override
  public void close() {
    try {
      recording.stop();
      LOG.info("Weft's events are recorded in {}", file);
    } catch (RuntimeException e) {
      LOG.warn("The recording {} was not written: {}", file, e.toString());
    } finally {
      recording.close();
    }
  }
}
