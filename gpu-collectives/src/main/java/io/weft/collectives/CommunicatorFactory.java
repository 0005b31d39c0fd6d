package io.weft.collectives;

/** An implementation of communicators. Implementations are thread-safe. */
@FunctionalInterface
public interface CommunicatorFactory {
  /**
   * Creates this rank's end together with all other ranks of the bootstrap.
   *
   * @param bootstrap still the caller's to close afterwards
   * @throws CollectiveException naming the ranks that failed or did not come within the timeout
   */
  Communicator create(Bootstrap bootstrap, CommunicatorOptions options);
}
