package io.weft.spark.transfers;

import java.util.List;

/** The way to the driver. Implementations are thread-safe. */
public interface TransferDriver {
  /**
   * Asks a clique's meeting, which answers at once.
   *
   * @throws InterruptedException if the thread is interrupted
   * @throws Exception if no answer comes; asking again may help
   */
  CliqueAnswer meet(CliqueCall call) throws Exception;

  /**
   * The executors that are gone.
   *
   * @param known how many of them were heard of before
   * @throws Exception if no answer comes; asking again may help
   */
  List<Departure> departures(int known) throws Exception;
}
