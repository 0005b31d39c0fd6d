package io.weft.spark.feed;

import io.weft.device.Event;
import java.util.List;
import java.util.function.Consumer;

/**
 * A batch that lies on the device for as long as its shard.
 *
 * @param rows in it
 * @param addresses of its columns, by their number in the layout
 * @param keepers of its memory: each keeps a part of it until an event has ended
 */
record DeviceBatch(int rows, List<Long> addresses, List<Consumer<Event>> keepers) {
  /** Keeps the memory until the event has ended, also beyond the shard's end. */
  void usedUntil(Event event) {
    keepers.forEach(keeper -> keeper.accept(event));
  }
}
