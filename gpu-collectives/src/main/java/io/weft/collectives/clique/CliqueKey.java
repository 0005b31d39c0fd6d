package io.weft.collectives.clique;

import io.weft.device.Device;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;

/**
 * The key of a cached communicator. Two keys are equal only with the same incarnations of all
 * members, so a restarted process never gets a communicator of its earlier incarnation.
 *
 * @param members by rank; at least one, each once
 * @param purpose keeps traffic of different kinds apart, such as "collectives" or "transfers"
 */
public record CliqueKey(List<CliqueMember> members, String purpose)
    implements Comparable<CliqueKey> {
  private static final Comparator<CliqueKey> ORDER =
      Comparator.comparingInt((CliqueKey key) -> -key.size())
          .thenComparing(CliqueKey::purpose)
          .thenComparing(CliqueKey::compareMembers);

  public CliqueKey {
    members = List.copyOf(members);
    Objects.requireNonNull(purpose, "purpose");
    if (members.isEmpty()) {
      throw new IllegalArgumentException("a clique without members");
    }
    if (new HashSet<>(members).size() != members.size()) {
      throw new IllegalArgumentException("a member is twice in " + members);
    }
  }

  public int size() {
    return members.size();
  }

  /**
   * The rank of a member.
   *
   * @throws IllegalArgumentException when it is not a member
   */
  public int rankOf(CliqueMember member) {
    int rank = members.indexOf(member);
    if (rank < 0) {
      throw new IllegalArgumentException(member + " is not a member of " + this);
    }
    return rank;
  }

  boolean includes(String process, String incarnation) {
    return members.stream().anyMatch(member -> member.isOf(process, incarnation));
  }

  /** A total order: larger cliques first, then by purpose and members. */
  @Override
  public int compareTo(CliqueKey other) {
    return ORDER.compare(this, other);
  }

  /** Compares two keys with the same number of members. */
  private static int compareMembers(CliqueKey one, CliqueKey two) {
    for (int rank = 0; rank < one.size(); rank++) {
      int order = one.members.get(rank).compareTo(two.members.get(rank));
      if (order != 0) {
        return order;
      }
    }
    return 0;
  }

  @Override
  public String toString() {
    return "clique " + members + " for " + purpose;
  }

  /**
   * A device of one incarnation of a process.
   *
   * @param process id of the executor or process
   * @param incarnation differs between restarts with the same process id; never empty
   */
  public record CliqueMember(String process, String incarnation, Device device)
      implements Comparable<CliqueMember> {
    public CliqueMember {
      Objects.requireNonNull(process, "process");
      Objects.requireNonNull(device, "device");
      if (incarnation.isEmpty()) {
        throw new IllegalArgumentException("process " + process + " has no incarnation");
      }
    }

    /** Whether this is a device of this incarnation of the process. */
    boolean isOf(String otherProcess, String otherIncarnation) {
      return process.equals(otherProcess) && incarnation.equals(otherIncarnation);
    }

    @Override
    public int compareTo(CliqueMember other) {
      int byProcess = process.compareTo(other.process);
      if (byProcess != 0) {
        return byProcess;
      }
      int byIncarnation = incarnation.compareTo(other.incarnation);
      return byIncarnation != 0 ? byIncarnation : device.compareTo(other.device);
    }

    @Override
    public String toString() {
      return process + "/" + device + "@" + incarnation;
    }
  }
}
