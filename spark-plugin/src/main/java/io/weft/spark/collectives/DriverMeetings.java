package io.weft.spark.collectives;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * All meetings of the application, on the driver: one for each attempt at a barrier stage. Never
 * blocks, because it is called on Spark's message and listener threads. Thread-safe.
 */
public final class DriverMeetings {
  private static final int ENDED_STAGES = 1000;

  private final ConcurrentMap<MeetingKey, Meeting> meetings = new ConcurrentHashMap<>();

  /** The last attempt that ended, by stage; only of stages that ended lately. */
  private final Map<Integer, Integer> ended =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Integer> eldest) {
          return size() > ENDED_STAGES;
        }
      };

  /** Answers a task at once. */
  public MeetingAnswer answer(MeetingCall call) {
    if (hasEnded(call.key())) {
      return new MeetingAnswer(
          "",
          List.of(),
          null,
          List.of(),
          "task %s came to %s, which has ended".formatted(call.name(), call.key()),
          List.of(call.rank()));
    }
    return meeting(call.key(), call.nranks()).answer(call);
  }

  private Meeting meeting(MeetingKey key, int nranks) {
    return meetings.computeIfAbsent(key, absent -> new Meeting(absent, nranks));
  }

  /** Meetings that are open, for tests and the log. */
  int open() {
    return meetings.size();
  }

  void stageStarted(MeetingKey key, int tasks) {
    if (!hasEnded(key)) {
      Meeting unused = meeting(key, tasks);
    }
  }

  void taskStarted(MeetingKey key, int rank, String name) {
    Meeting meeting = meetings.get(key);
    if (meeting != null) {
      meeting.started(rank, name);
    }
  }

  void taskFailed(MeetingKey key, int rank, String reason) {
    Meeting meeting = meetings.get(key);
    if (meeting != null) {
      meeting.fail(rank, reason);
    }
  }

  void stageEnded(MeetingKey key) {
    synchronized (ended) {
      ended.merge(key.stage(), key.attempt(), Math::max);
    }
    meetings.keySet().removeIf(this::hasEnded);
  }

  private boolean hasEnded(MeetingKey key) {
    synchronized (ended) {
      return ended.getOrDefault(key.stage(), -1) >= key.attempt();
    }
  }
}
