package io.weft.spark.collectives;

import io.weft.collectives.UniqueId;
import io.weft.collectives.fault.CollectiveException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The driver's side of one communicator's creation: keeps what ranks bring until all have fetched
 * it. Nobody waits here. Thread-safe.
 */
final class Meeting {
  private final MeetingKey key;
  private final String id = UniqueId.create().encode();
  private final String[] names;
  private final Map<String, byte[][]> rounds = new LinkedHashMap<>();
  private List<Integer> culprits = List.of();
  private String failure;

  Meeting(MeetingKey key, int nranks) {
    this.key = key;
    this.names = new String[nranks];
    Arrays.fill(names, "");
  }

  /** Takes what the task brings and says how its round stands. */
  synchronized MeetingAnswer answer(MeetingCall call) {
    if (call.nranks() != names.length || call.rank() < 0 || call.rank() >= names.length) {
      throw new IllegalArgumentException(
          "%s has %d tasks, but one came as %d of %d"
              .formatted(key, names.length, call.rank(), call.nranks()));
    }
    names[call.rank()] = call.name();
    if (call.failure() != null) {
      fail(call.rank(), call.failure());
    }
    byte[][] messages = rounds.computeIfAbsent(call.round(), name -> new byte[names.length][]);
    if (call.message() != null) {
      messages[call.rank()] = call.message();
    }
    List<Integer> missing = missing(messages);
    if (missing.isEmpty()) {
      forgetBefore(call.round());
    }
    return new MeetingAnswer(
        id,
        List.of(names.clone()),
        missing.isEmpty() ? new ArrayList<>(Arrays.asList(messages)) : null,
        missing,
        failure,
        culprits);
  }

  private static List<Integer> missing(byte[][] messages) {
    List<Integer> missing = new ArrayList<>();
    for (int rank = 0; rank < messages.length; rank++) {
      if (messages[rank] == null) {
        missing.add(rank);
      }
    }
    return missing;
  }

  /** Whoever has come to a round has fetched all before it. */
  private void forgetBefore(String round) {
    var names = rounds.keySet().iterator();
    while (names.hasNext() && !names.next().equals(round)) {
      names.remove();
    }
  }

  /** What a task is called that Spark has started; it may never come here. */
  synchronized void started(int rank, String name) {
    if (rank < names.length && names[rank].isEmpty()) {
      names[rank] = name;
    }
  }

  /** There will be no communicator; the first reason counts. */
  synchronized void fail(int rank, String reason) {
    if (failure == null && rank < names.length) {
      String name = names[rank].isEmpty() ? "" : " (" + names[rank] + ")";
      failure =
          "%s%s of %s %s".formatted(CollectiveException.name(List.of(rank)), name, key, reason);
      culprits = List.of(rank);
    }
  }
}
