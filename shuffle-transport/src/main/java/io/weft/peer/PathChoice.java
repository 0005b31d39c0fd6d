package io.weft.peer;

import java.util.Objects;

/**
 * The path between two executors, and why no better path is used. Names no executors, so that pairs
 * in the same situation have equal choices.
 *
 * @param path the chosen path
 * @param reason in words, without a full stop
 */
public record PathChoice(TransferPath path, String reason) {
  public PathChoice {
    Objects.requireNonNull(path, "path");
    if (reason.isBlank()) {
      throw new IllegalArgumentException("a choice without a reason");
    }
  }

  /** For example "shm (both run on one kernel)". */
  @Override
  public String toString() {
    return path + " (" + reason + ")";
  }
}
