package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Device;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.transfers.PreparedTransfer.TransferEndpoints;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Ownership of a transfer under concurrent calls. */
class PreparedTransferTest {
  private static final int ROUNDS = 20_000;

  /** The batch is launched while the transfer is cancelled: no offer may have freed memory. */
  @Test
  void anOfferedTransferKeepsItsMemoryOrHasFailed() throws Exception {
    ExecutorService other = java.util.concurrent.Executors.newSingleThreadExecutor();
    CyclicBarrier barrier = new CyclicBarrier(2);
    try {
      for (int round = 0; round < ROUNDS; round++) {
        AtomicReference<Event> use = new AtomicReference<>();
        PreparedTransfer transfer = receive(use);
        Future<?> dropped =
            other.submit(
                () -> {
                  barrier.await(30, TimeUnit.SECONDS);
                  transfer.close();
                  return null;
                });
        barrier.await(30, TimeUnit.SECONDS);
        transfer.queue();
        boolean failed = !transfer.entry().failure().isEmpty();
        dropped.get(30, TimeUnit.SECONDS);
        boolean free = use.get().state() == Event.State.COMPLETE;
        assertThat(!failed && free)
            .as("offered, and its memory free, in round %d", round)
            .isFalse();
      }
    } finally {
      other.shutdownNow();
    }
  }

  private static PreparedTransfer receive(AtomicReference<Event> use) {
    BufferOwner owner =
        new BufferOwner() {
          @Override
          public long address() {
            return 4096;
          }

          @Override
          public long bytes() {
            return 64;
          }

          @Override
          public void usedUntil(Event event) {
            use.set(event);
          }
        };
    return new PreparedTransfer(
        new CliqueKey(List.of(new CliqueMember("0", "first", Device.HOST)), "test"),
        new TransferEndpoints(new DeviceId("0", 0), new DeviceId("1", 0), false),
        7,
        TransferAttempt.NONE,
        TypedBuffer.of(owner, 0, DataType.INT8, 64),
        TransferEncoding.PLAIN,
        HostEvent.completed("the allocation"));
  }
}
