package io.weft.spark.transfers;

import io.weft.collectives.UniqueId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** One meeting of the two ends of a clique. Not thread-safe; nobody waits here. */
final class CliqueMeeting {
  private final List<CliqueEnd> clique;
  private final String id = UniqueId.create().encode();
  private final String[] tickets = new String[2];
  private final Map<String, byte[][]> rounds = new HashMap<>();
  private String failure;

  CliqueMeeting(List<CliqueEnd> clique) {
    this.clique = clique;
  }

  boolean hasRank(int rank) {
    return tickets[rank] != null;
  }

  boolean isFull() {
    return hasRank(0) && hasRank(1);
  }

  void join(int rank, String ticket) {
    tickets[rank] = ticket;
  }

  /** The tickets with which an executor came. */
  List<String> ticketsOf(String executorId) {
    return IntStream.range(0, 2)
        .filter(rank -> hasRank(rank) && clique.get(rank).executorId().equals(executorId))
        .mapToObj(rank -> tickets[rank])
        .toList();
  }

  boolean includes(String executorId) {
    return clique.stream().anyMatch(end -> end.executorId().equals(executorId));
  }

  /** There will be no communicator; the first reason counts. */
  void fail(String reason) {
    failure = failure == null ? reason : failure;
  }

  CliqueAnswer answer(CliqueCall call) {
    byte[][] messages = rounds.computeIfAbsent(call.round(), round -> new byte[2][]);
    if (call.message() != null) {
      messages[call.rank()] = call.message();
    }
    boolean complete = messages[0] != null && messages[1] != null;
    // What is complete was brought before anything failed.
    return new CliqueAnswer(
        id, complete ? new ArrayList<>(Arrays.asList(messages)) : null, complete ? null : failure);
  }
}
