package io.weft.spark.ui;

import com.fasterxml.jackson.annotation.JsonIgnoreProperties;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/**
 * What happened in an application. An event that repeats is kept once, with its number. Keeps
 * {@link #MAX_EVENTS}; the oldest of the most frequent kind goes first. Thread-safe.
 */
final class TimeLine {
  /** Maximum number of events. */
  static final int MAX_EVENTS = 300;

  private static final int MAX_TEXT = 400;

  private final Map<Key, Event> events = new LinkedHashMap<>();
  private final Map<Key, Event> changed = new LinkedHashMap<>();

  /** The kinds of events, in the order of the lanes. */
  public enum Kind {
    /** A shuffle went another way than through Weft. */
    FALLBACK,
    /** A write or a fetch through Weft failed. */
    FAILURE,
    /** Weft takes no new shuffles. */
    SWITCHED_OFF,
    /** An executor ended. */
    EXECUTOR_ENDED,
    /** An executor adopted map outputs of one that died. */
    ADOPTION,
    /** An executor received map outputs of a decommissioned one. */
    MIGRATION,
    /** The shared memory of an executor is full. */
    PRESSURE,
    /** An executor has a problem that the user can solve. */
    WARNING;

    /** The name for people. */
    String label() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  private record Key(String kind, String text) {}

  /**
   * An event.
   *
   * @param first when it happened first, in milliseconds since 1970
   * @param last when it happened last
   * @param count how often it happened
   * @param kind label of its kind; a text, so that logs of later versions can be read
   * @param text what happened, as a clause
   */
  @JsonIgnoreProperties(ignoreUnknown = true)
  public record Event(long first, long last, long count, String kind, String text) {
    public Event {
      kind = Objects.requireNonNullElse(kind, "");
      text = Objects.requireNonNullElse(text, "");
    }
  }

  synchronized void add(long time, Kind kind, String text) {
    String kept = text.length() > MAX_TEXT ? cut(text) + "…" : text;
    Event before = events.get(new Key(kind.label(), kept));
    set(
        before == null
            ? new Event(time, time, 1, kind.label(), kept)
            : new Event(before.first(), time, before.count() + 1, kind.label(), kept));
  }

  /** Cuts between characters: half of one could not be written as JSON. */
  private static String cut(String text) {
    boolean inside = Character.isHighSurrogate(text.charAt(MAX_TEXT - 1));
    return text.substring(0, inside ? MAX_TEXT - 1 : MAX_TEXT);
  }

  /** Adds an event, or replaces it. */
  synchronized void set(Event event) {
    Key key = new Key(event.kind(), event.text());
    // The newest last: the oldest go.
    events.remove(key);
    changed.remove(key);
    events.put(key, event);
    changed.put(key, event);
    if (events.size() > MAX_EVENTS) {
      Key oldest = oldestOfTheMostFrequentKind();
      events.remove(oldest);
      changed.remove(oldest);
    }
  }

  /** Many events of one kind, such as executors that end, must not push out the others. */
  private Key oldestOfTheMostFrequentKind() {
    Map<String, Integer> kinds = new TreeMap<>();
    String most = "";
    for (Key key : events.keySet()) {
      int count = kinds.merge(key.kind(), 1, Integer::sum);
      most = count > kinds.getOrDefault(most, 0) ? key.kind() : most;
    }
    String kind = most;
    return events.keySet().stream().filter(key -> key.kind().equals(kind)).findFirst().get();
  }

  /** Returns all events, in the order in which they last happened. */
  synchronized List<Event> events() {
    return new ArrayList<>(events.values());
  }

  /** Returns the events that have changed since the last call. */
  synchronized List<Event> takeChanged() {
    List<Event> taken = new ArrayList<>(changed.values());
    changed.clear();
    return taken;
  }
}
