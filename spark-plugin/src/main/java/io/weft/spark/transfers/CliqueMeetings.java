package io.weft.spark.transfers;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Where the ends of all cliques of the application meet, on the driver. Whoever comes first opens a
 * meeting, the other end's next coming completes it; who comes for the same clique later, opens the
 * next one. Never blocks, because it is called on Spark's message and listener threads.
 * Thread-safe.
 */
public final class CliqueMeetings {
  private final Map<List<CliqueEnd>, CliqueMeeting> waiting = new HashMap<>();
  private final Map<String, CliqueMeeting> byTicket = new HashMap<>();
  private final DepartedExecutors departed;

  /**
   * No meetings yet.
   *
   * @param departed nobody waits for these
   */
  public CliqueMeetings(DepartedExecutors departed) {
    this.departed = departed;
  }

  /** Answers one end at once. */
  public synchronized CliqueAnswer answer(CliqueCall call) {
    if (call.round().equals(CliqueCall.LEAVE)) {
      leave(call);
      return new CliqueAnswer("", null, null);
    }
    CliqueMeeting meeting = byTicket.get(call.ticket());
    if (meeting == null) {
      meeting = join(call);
    }
    for (CliqueEnd end : call.clique()) {
      departed.reason(end.executorId()).ifPresent(meeting::fail);
    }
    return meeting.answer(call);
  }

  private CliqueMeeting join(CliqueCall call) {
    CliqueMeeting meeting = waiting.get(call.clique());
    if (meeting == null || meeting.hasRank(call.rank())) {
      meeting = new CliqueMeeting(call.clique());
      waiting.put(call.clique(), meeting);
    }
    meeting.join(call.rank(), call.ticket());
    byTicket.put(call.ticket(), meeting);
    if (meeting.isFull()) {
      waiting.remove(call.clique(), meeting);
    }
    return meeting;
  }

  private void leave(CliqueCall call) {
    CliqueMeeting meeting = byTicket.remove(call.ticket());
    if (meeting != null) {
      waiting.remove(call.clique(), meeting);
      meeting.fail(call.clique().get(call.rank()) + " has left the meeting");
    }
  }

  /** Ends the meetings with an executor that is gone. */
  public synchronized void departed(String executorId, String reason) {
    List<CliqueMeeting> hit = new ArrayList<>();
    for (CliqueMeeting meeting : byTicket.values()) {
      if (meeting.includes(executorId)) {
        hit.add(meeting);
      }
    }
    hit.forEach(meeting -> meeting.fail(reason));
    waiting.values().removeAll(hit);
    // The survivors leave with their tickets; those of the executor that is gone never do.
    hit.forEach(meeting -> byTicket.keySet().removeAll(meeting.ticketsOf(executorId)));
  }

  /** Ends that have come and not gone, for tests and the log. */
  synchronized int present() {
    return byTicket.size();
  }
}
