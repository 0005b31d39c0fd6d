package io.weft.device.probe;

import java.util.Objects;

/**
 * Whether a capability exists.
 *
 * @param isAvailable yes or no
 * @param reason what was found, or why it is missing; one line, never empty
 */
public record Finding(boolean isAvailable, String reason) {
  public Finding {
    Objects.requireNonNull(reason, "reason");
    if (reason.isBlank()) {
      throw new IllegalArgumentException("a finding without a reason");
    }
  }

  static Finding yes(String what) {
    return new Finding(true, what);
  }

  static Finding no(String why) {
    return new Finding(false, why);
  }

  @Override
  public String toString() {
    return (isAvailable ? "yes, " : "no, ") + reason;
  }
}
