package io.weft.spark.rendezvous;

/** Sends calls to the rendezvous on the driver. Implementations are thread-safe. */
@FunctionalInterface
public interface RendezvousDriver<K extends RendezvousKey> {
  /**
   * Sends a call to the driver, which answers at once.
   *
   * @throws InterruptedException if the thread is interrupted
   * @throws Exception if no answer comes; a retry may succeed
   */
  RendezvousAnswer ask(RendezvousCall<K> call) throws Exception;
}
