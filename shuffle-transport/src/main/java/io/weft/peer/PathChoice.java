package io.weft.peer;

import java.util.Objects;

/**
 * How two executors exchange something, and why not in a better way. Names no executors, so that
 * pairs in the same situation have the same choice.
 *
 * @param path the way
 * @param reason in words, without a full stop
 */
public record PathChoice(TransferPath path, String reason) {
  public PathChoice {
    Objects.requireNonNull(path, "path");
    if (reason.isBlank()) {
      throw new IllegalArgumentException("a choice without a reason");
    }
  }

  /** Such as "shm (both run on one kernel)". */
  @Override
  public String toString() {
    return path + " (" + reason + ")";
  }
}
