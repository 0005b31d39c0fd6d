package io.weft.crosshost;

import io.weft.collectives.clique.CliqueKey;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Transfers of one device that are launched together. Filled by one thread at a time under the
 * launcher's lock, and not changed after the launch.
 */
final class TransferBatch {
  private final List<PreparedTransfer> transfers = new ArrayList<>();
  private long bytes;
  private boolean left;

  void add(PreparedTransfer transfer) {
    transfers.add(transfer);
    bytes += transfer.buffer().bytes();
  }

  long bytes() {
    return bytes;
  }

  boolean isEmpty() {
    return transfers.isEmpty();
  }

  /** Marks the batch as launched. Returns true for the first call. */
  boolean leave() {
    boolean first = !left;
    left = true;
    return first;
  }

  List<PreparedTransfer> transfers() {
    return transfers;
  }

  /** The transfers of each clique, the cliques in the order of first appearance. */
  Map<CliqueKey, List<PreparedTransfer>> byClique() {
    Map<CliqueKey, List<PreparedTransfer>> groups = new LinkedHashMap<>();
    for (PreparedTransfer transfer : transfers) {
      groups.computeIfAbsent(transfer.clique(), clique -> new ArrayList<>()).add(transfer);
    }
    return groups;
  }

  /** Cancels a task once every transfer has ended. */
  void cancelWhenDone(Future<?> task) {
    AtomicInteger open = new AtomicInteger(transfers.size());
    for (PreparedTransfer transfer : transfers) {
      transfer
          .event()
          .whenDone(
              failure -> {
                if (open.decrementAndGet() == 0) {
                  task.cancel(false);
                }
              });
    }
  }
}
