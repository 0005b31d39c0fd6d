package io.weft.examples.trace;

import com.fasterxml.jackson.core.JsonEncoding;
import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import io.weft.examples.trace.TraceSurvey.Origin;
import java.io.BufferedOutputStream;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Set;
import jdk.jfr.ValueDescriptor;
import jdk.jfr.consumer.RecordedEvent;

/**
 * Writes a trace in the trace event format, as a JSON object. Times are microseconds since the
 * first event. Executors are processes. Fetches and transfers overlap, so they have threads of
 * their own.
 */
final class TraceWriter implements AutoCloseable {
  private static final Set<String> SPARE =
      Set.of("startTime", "duration", "eventThread", "stackTrace");

  /** Numbers up to 2⁵³ are exact in JavaScript. */
  private static final long ID_MASK = (1L << 52) - 1;

  private static final int STREAM_DIGITS = 32;

  private final JsonGenerator json;
  private final TraceSurvey survey;

  /** Starts a file. */
  TraceWriter(Path file, TraceSurvey survey) throws IOException {
    this.survey = survey;
    this.json =
        new JsonFactory()
            .createGenerator(
                new BufferedOutputStream(Files.newOutputStream(file)), JsonEncoding.UTF8);
    json.writeStartObject();
    json.writeStringField("displayTimeUnit", "ms");
    json.writeObjectFieldStart("otherData");
    json.writeNumberField("weftTrace", 1);
    json.writeStringField("start", Instant.EPOCH.plusNanos(survey.first()).toString());
    json.writeStringField("clock", "of each executor's host");
    json.writeEndObject();
    json.writeArrayFieldStart("traceEvents");
    for (Origin origin : survey.all()) {
      name(origin);
    }
  }

  private void name(Origin origin) throws IOException {
    json.writeStartObject();
    head("process_name", "M", origin.pid(), 0);
    json.writeObjectFieldStart("args");
    json.writeStringField("name", origin.title());
    json.writeStringField("executor", origin.executor());
    json.writeStringField("host", origin.host());
    json.writeEndObject();
    json.writeEndObject();
    for (Map.Entry<Long, String> thread : origin.threads().entrySet()) {
      nameThread(origin, thread.getKey(), title(thread.getKey(), thread.getValue()));
    }
    for (Lanes lanes : origin.lanes().values()) {
      for (int lane = 0; lane < lanes.count(); lane++) {
        nameThread(origin, lanes.id(lane), lanes.title(lane));
      }
    }
  }

  /** Spark renames its threads for each task. */
  private static String title(long id, String name) {
    return name.startsWith("Executor task launch worker") ? "tasks " + id : name;
  }

  private void nameThread(Origin origin, long thread, String title) throws IOException {
    json.writeStartObject();
    head("thread_name", "M", origin.pid(), thread);
    json.writeObjectFieldStart("args");
    json.writeStringField("name", title);
    json.writeEndObject();
    json.writeEndObject();
  }

  private void head(String name, String phase, int process, long thread) throws IOException {
    json.writeStringField("name", name);
    json.writeStringField("ph", phase);
    json.writeNumberField("pid", process);
    json.writeNumberField("tid", thread);
  }

  /** Writes an event, in the order in which the survey has read it. */
  void write(RecordingEvents recording, RecordedEvent event) throws IOException {
    if (event.getEventType().getName().equals(RecordingEvents.EXECUTOR)) {
      return;
    }
    Origin origin = survey.origin(recording);
    String name = RecordingEvents.name(event);
    long start = RecordingEvents.start(event) - survey.first();
    // Not the duration of the event, whose rounding can put its end behind that of an outer one.
    long nanos = RecordingEvents.end(event) - RecordingEvents.start(event);
    long thread = thread(origin, name, event);
    json.writeStartObject();
    head(name, "X", origin.pid(), thread);
    json.writeStringField("cat", "weft");
    json.writeNumberField("ts", micros(start));
    json.writeNumberField("dur", micros(nanos));
    arguments(event);
    json.writeEndObject();
    if (survey.executors() > 1) {
      flow(event, name, origin.pid(), thread, start, nanos);
    }
  }

  private static long thread(Origin origin, String name, RecordedEvent event) {
    Lanes lanes = Lanes.need(name) ? origin.lanes().get(name) : null;
    if (lanes != null) {
      return lanes.id(lanes.next());
    }
    return event.getThread() == null ? 0 : TraceSurvey.id(event.getThread());
  }

  private void arguments(RecordedEvent event) throws IOException {
    json.writeObjectFieldStart("args");
    for (ValueDescriptor field : event.getFields()) {
      if (SPARE.contains(field.getName())) {
        continue;
      }
      Object value = event.getValue(field.getName());
      if (value instanceof Number number) {
        json.writeNumberField(field.getName(), number.longValue());
      } else {
        json.writeStringField(field.getName(), value == null ? "" : value.toString());
      }
    }
    json.writeEndObject();
  }

  /** Draws an arrow from a peer's answer to the end of the fetch that gets it. */
  private void flow(
      RecordedEvent event, String name, int process, long thread, long start, long nanos)
      throws IOException {
    boolean serve = name.equals("Serve");
    if (!serve && !name.equals("Fetch")) {
      return;
    }
    String stream = String.valueOf(event.getString("stream"));
    if (stream.length() != STREAM_DIGITS || stream.chars().allMatch(digit -> digit == '0')) {
      return;
    }
    json.writeStartObject();
    head("blocks", serve ? "s" : "f", process, thread);
    json.writeStringField("cat", "weft");
    if (!serve) {
      json.writeStringField("bp", "e");
    }
    json.writeNumberField("id", Long.parseUnsignedLong(stream.substring(16), 16) & ID_MASK);
    json.writeNumberField("ts", micros(start + (serve ? nanos / 2 : nanos - nanos / 1000)));
    json.writeEndObject();
  }

  private static BigDecimal micros(long nanos) {
    return BigDecimal.valueOf(nanos, 3);
  }

  /** Ends the file. */
  @Override
  public void close() throws IOException {
    try {
      json.writeEndArray();
      json.writeEndObject();
    } finally {
      json.close();
    }
  }
}
