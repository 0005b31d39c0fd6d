package io.weft.collectives.clique;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** A member's vote: the name of the communicator that it has for a clique, or nothing. */
final class CliqueVote {
  private CliqueVote() {}

  static byte[] of(CachedCommunicator cached) {
    String name = cached == null ? "" : cached.communicator().id().name();
    return name.getBytes(StandardCharsets.UTF_8);
  }

  /** Whether all members have the same communicator. */
  static boolean isUnanimous(List<byte[]> votes) {
    String first = text(votes.get(0));
    return !first.isEmpty() && votes.stream().allMatch(vote -> text(vote).equals(first));
  }

  static String text(byte[] vote) {
    return new String(vote, StandardCharsets.UTF_8);
  }
}
