package io.weft.collectives.clique;

import java.nio.charset.StandardCharsets;
import java.util.List;

/** What members say about the communicator each has for a clique: its name, or nothing. */
final class CliqueVote {
  private CliqueVote() {}

  static byte[] of(CachedCommunicator cached) {
    String name = cached == null ? "" : cached.communicator().id().name();
    return name.getBytes(StandardCharsets.UTF_8);
  }

  /** Whether all have the same one. */
  static boolean isUnanimous(List<byte[]> votes) {
    String first = text(votes.get(0));
    return !first.isEmpty() && votes.stream().allMatch(vote -> text(vote).equals(first));
  }

  static String text(byte[] vote) {
    return new String(vote, StandardCharsets.UTF_8);
  }
}
