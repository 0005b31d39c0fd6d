package io.weft.transfers;

/**
 * The attempt of a piece of work that a transfer belongs to, for example of a Spark stage. If the
 * ends of two transfers name the same work and different attempts, the older one is stale: it fails
 * at its own end, and the newer one waits for its own attempt. Immutable.
 *
 * @param work the same at both ends, 0 or more; -1 for no work, which is never stale
 * @param number of the attempt, 0 or more
 */
public record TransferAttempt(int work, int number) {
  /** Belongs to no work. */
  public static final TransferAttempt NONE = new TransferAttempt(-1, 0);

  /** Whether the other is a later attempt of the same work. */
  boolean isBefore(TransferAttempt other) {
    return work >= 0 && work == other.work && number < other.number;
  }

  /** For example "attempt 1 of stage 3". */
  @Override
  public String toString() {
    return work < 0 ? "no attempt" : "attempt " + number + " of stage " + work;
  }
}
