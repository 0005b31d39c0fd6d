package io.weft.collectives;

/** Creates communicators of one implementation. Implementations are thread-safe. */
@FunctionalInterface
public interface CommunicatorFactory {
  /**
   * Creates this rank's end together with all other ranks of the bootstrap.
   *
   * @param bootstrap the caller closes it afterwards
   * @throws CollectiveException naming the ranks that failed or did not arrive within the timeout
   */
  Communicator create(Bootstrap bootstrap, CommunicatorOptions options);
}
