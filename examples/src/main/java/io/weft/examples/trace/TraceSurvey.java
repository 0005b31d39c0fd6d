package io.weft.examples.trace;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordedThread;

/**
 * What the writer of a trace must know before the first event: the executors, their threads, the
 * first time, and the lanes of events that overlap. Keeps 40 bytes for each fetch and transfer, and
 * nothing for other events.
 */
final class TraceSurvey {
  private final Map<RecordingEvents, Origin> origins = new LinkedHashMap<>();
  private final Map<String, Origin> known = new LinkedHashMap<>();
  private final List<String> warnings = new ArrayList<>();
  private long first = Long.MAX_VALUE;
  private long events;

  private TraceSurvey() {}

  /**
   * An executor of the trace: a process there.
   *
   * @param pid number of the process, from 1
   * @param executor id of the executor; the name of the file if it is unknown
   * @param host empty if it is unknown
   * @param threads names by thread id
   * @param lanes by name of the event
   */
  record Origin(
      int pid, String executor, String host, Map<Long, String> threads, Map<String, Lanes> lanes) {
    /** The name for a reader. */
    String title() {
      return host.isEmpty() ? executor : "executor " + executor + " (" + host + ")";
    }
  }

  /** The identity in a recording; null while it is unknown. */
  private static final class Identity {
    private String executor;
    private String host = "";
    private String server = "";
    private long events;
    private final Map<Long, String> threads = new TreeMap<>();
    private final Map<String, Lanes> lanes = new TreeMap<>();
  }

  /**
   * Reads all recordings once.
   *
   * @param unreadable why other files were left out
   * @throws IOException if none has events of Weft
   */
  static TraceSurvey of(List<RecordingEvents> recordings, List<String> unreadable)
      throws IOException {
    TraceSurvey survey = new TraceSurvey();
    survey.warnings.addAll(unreadable);
    for (RecordingEvents recording : recordings) {
      survey.read(recording);
    }
    if (survey.events == 0) {
      throw new IOException(
          "no events of Weft: "
              + String.join("; ", survey.warnings)
              + ". Set spark.weft.trace.folder to record them");
    }
    survey.known.values().stream()
        .flatMap(origin -> origin.lanes().values().stream())
        .forEach(Lanes::assign);
    return survey;
  }

  private void read(RecordingEvents recording) throws IOException {
    Identity found = new Identity();
    boolean complete = recording.forEach(event -> take(event, found));
    if (!complete) {
      warnings.add(
          "%s is cut off after %d events: its executor was killed, or the copy is incomplete"
              .formatted(recording.file(), found.events));
    } else if (found.events == 0) {
      warnings.add(recording.file() + " has no events of Weft");
    }
    boolean named = found.executor != null;
    String name = named ? found.executor : String.valueOf(recording.file().getFileName());
    String key = named ? name + " " + found.server : recording.file().toString();
    Origin origin = known.get(key);
    if (origin == null) {
      origin = new Origin(known.size() + 1, name, found.host, found.threads, found.lanes);
      known.put(key, origin);
    } else {
      origin.threads().putAll(found.threads);
      merge(origin.lanes(), found.lanes);
    }
    origins.put(recording, origin);
    events += found.events;
  }

  private static void merge(Map<String, Lanes> all, Map<String, Lanes> more) {
    more.forEach((name, lanes) -> all.computeIfAbsent(name, Lanes::new).addAll(lanes));
  }

  private void take(RecordedEvent event, Identity found) {
    if (event.getEventType().getName().equals(RecordingEvents.EXECUTOR)) {
      found.executor = event.getString("executor");
      found.host = event.getString("host");
      found.server = event.getString("server");
      return;
    }
    found.events++;
    long start = RecordingEvents.start(event);
    first = Math.min(first, start);
    String name = RecordingEvents.name(event);
    if (Lanes.need(name)) {
      found.lanes.computeIfAbsent(name, Lanes::new).add(start, RecordingEvents.end(event));
    } else {
      RecordedThread thread = event.getThread();
      if (thread != null) {
        found.threads.put(id(thread), String.valueOf(thread.getJavaName()));
      }
    }
  }

  /** The id of a thread in traces. */
  static long id(RecordedThread thread) {
    return thread.getJavaThreadId() > 0 ? thread.getJavaThreadId() : thread.getOSThreadId();
  }

  /** The executor of a recording. */
  Origin origin(RecordingEvents recording) {
    return origins.get(recording);
  }

  /** All executors, in the order of the files. */
  Iterable<Origin> all() {
    return known.values();
  }

  /** The number of executors. */
  int executors() {
    return known.size();
  }

  /** The number of events, without those that name executors. */
  long events() {
    return events;
  }

  /** The start of the first event, in nanoseconds since 1970. */
  long first() {
    return first;
  }

  /** What is wrong with files that are read nevertheless. */
  List<String> warnings() {
    return warnings;
  }
}
