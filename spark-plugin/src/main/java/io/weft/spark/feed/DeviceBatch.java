package io.weft.spark.feed;

import io.weft.device.Event;
import java.util.List;
import java.util.function.Consumer;

/**
 * A batch that stays on the device until its shard is closed.
 *
 * @param rows number of rows
 * @param addresses of its columns, by column number in the layout
 * @param keepers one per part of the memory: each keeps its part until an event has completed
 */
record DeviceBatch(int rows, List<Long> addresses, List<Consumer<Event>> keepers) {
  /** Keeps the memory until the event has completed, even after the shard is closed. */
  void usedUntil(Event event) {
    keepers.forEach(keeper -> keeper.accept(event));
  }
}
