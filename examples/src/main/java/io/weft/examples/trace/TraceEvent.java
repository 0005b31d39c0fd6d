package io.weft.examples.trace;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * An event of a trace file.
 *
 * @param json the event in the trace event format
 */
record TraceEvent(JsonNode json) {
  /**
   * Passes the events of a file, one at a time.
   *
   * @throws IOException if the file is no trace of {@code weft trace}, or is cut off
   */
  static void forEach(Path file, Consumer<TraceEvent> sink) throws IOException {
    boolean ours = false;
    try (JsonParser parser = new JsonFactory(new ObjectMapper()).createParser(file.toFile())) {
      if (parser.nextToken() == JsonToken.START_OBJECT) {
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
          String field = parser.currentName();
          JsonToken value = parser.nextToken();
          if (field.equals("otherData")) {
            JsonNode data = parser.readValueAsTree();
            ours = data.has("weftTrace");
          } else if (ours && field.equals("traceEvents") && value == JsonToken.START_ARRAY) {
            while (parser.nextToken() == JsonToken.START_OBJECT) {
              JsonNode event = parser.readValueAsTree();
              sink.accept(new TraceEvent(event));
            }
          } else {
            parser.skipChildren();
          }
        }
      }
    } catch (JsonProcessingException e) {
      throw new IOException(
          ours
              ? file + " is cut off or damaged: " + e.getOriginalMessage()
              : file + " is no trace of bin/weft trace",
          e);
    }
    if (!ours) {
      throw new IOException(file + " is no trace of bin/weft trace");
    }
  }

  String name() {
    return json.path("name").asText();
  }

  int process() {
    return json.path("pid").intValue();
  }

  long thread() {
    return json.path("tid").longValue();
  }

  /** Nanoseconds since the start of the trace. */
  long start() {
    return nanos("ts");
  }

  long nanos() {
    return nanos("dur");
  }

  private long nanos(String field) {
    return Math.round(json.path(field).doubleValue() * 1000);
  }

  long number(String argument) {
    return json.path("args").path(argument).longValue();
  }

  String text(String argument) {
    return json.path("args").path(argument).asText();
  }
}
