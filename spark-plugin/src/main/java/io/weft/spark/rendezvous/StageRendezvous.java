package io.weft.spark.rendezvous;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The rendezvous of the tasks of barrier stages: one for each stage attempt, from its start to its
 * end. Never blocks, because Spark's message and listener threads call it. Thread-safe.
 */
public final class StageRendezvous {
  private static final int ENDED_STAGES = 1000;

  private final RendezvousService<StageAttempt> attempts =
      new RendezvousService<>(new ExecutorLosses());

  /** The last attempt that ended, by stage; the most recent {@link #ENDED_STAGES} stages. */
  private final Map<Integer, Integer> ended =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Integer> eldest) {
          return size() > ENDED_STAGES;
        }
      };

  /** For example "task 7 on executor 2 at host-a". */
  public static String taskName(long taskId, String executorId, String host) {
    return "task " + taskId + " on executor " + executorId + " at " + host;
  }

  /** Answers a task at once. A task of an attempt that has ended gets a failure. */
  public synchronized RendezvousAnswer answer(RendezvousCall<StageAttempt> call) {
    if (hasEnded(call.key())) {
      return RendezvousAnswer.withoutRendezvous(
          "task %s came to %s, which has ended".formatted(call.name(), call.key()),
          List.of(call.rank()));
    }
    return attempts.answer(call);
  }

  /** The number of stage attempts that have a rendezvous, for tests. */
  int open() {
    return attempts.open();
  }

  synchronized void stageStarted(StageAttempt attempt, int tasks) {
    if (!hasEnded(attempt)) {
      attempts.expect(attempt, tasks);
    }
  }

  void taskStarted(StageAttempt attempt, int rank, String name) {
    attempts.name(attempt, rank, name);
  }

  void taskFailed(StageAttempt attempt, int rank, String reason) {
    attempts.fail(attempt, rank, reason);
  }

  synchronized void stageEnded(StageAttempt attempt) {
    ended.merge(attempt.stage(), attempt.attempt(), Math::max);
    attempts.end(this::hasEnded);
  }

  private boolean hasEnded(StageAttempt attempt) {
    return ended.getOrDefault(attempt.stage(), -1) >= attempt.attempt();
  }
}
