package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.shuffle.device.DeviceBlockMessages.HostReadMessages;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.store.BlockKey;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Answers about a table that the test fakes with copies, so that it needs no memory. */
class HostReadServerTest {
  private static final BlockKey KEY = new BlockKey(4, 9);
  private static final DeviceBlock BLOCK = new DeviceBlock(KEY, 0, 1);
  private static final TableLayout LAYOUT =
      TableLayout.fixed(List.of(TableColumn.of(ColumnKind.LONG, false)), 5);
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private static DeviceCatalog catalog() throws IOException {
    DeviceCatalog catalog = new DeviceCatalog();
    catalog.publish(
        new DeviceOutput(
            KEY, List.of(new DeviceOutput.Unit(null, List.of(LAYOUT), new long[] {0}))));
    return catalog;
  }

  private static byte[] read() {
    return HostReadMessages.read(new HostReadMessages.Piece(BLOCK, 0, 0, 8));
  }

  /** Otherwise a reader would treat an executor with a busy GPU as lost. */
  @Test
  void lookupsDoNotWaitForCopies() throws Exception {
    CountDownLatch go = new CountDownLatch(1);
    HostReadServer.Copies waiting =
        (slice, offset, length) -> {
          try {
            assertThat(go.await(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).isTrue();
          } catch (InterruptedException e) {
            throw new IllegalStateException(e);
          }
          return new byte[length];
        };
    try (HostReadServer server = new HostReadServer(catalog(), "3", waiting, TIMEOUT)) {
      List<CompletableFuture<byte[]>> reads = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        reads.add(server.answer(read()));
      }
      HostReadClient client = new HostReadClient((executor, request) -> now(server, request), "7");
      assertThat(client.held("3", List.of(new BlockKey(4, 8), KEY))).containsExactly(KEY);
      assertThat(client.tables("3", BLOCK)).containsExactly(LAYOUT);
      assertThat(reads).noneMatch(CompletableFuture::isDone);
      go.countDown();
      for (CompletableFuture<byte[]> each : reads) {
        assertThat(each.get(TIMEOUT.toSeconds(), TimeUnit.SECONDS)).hasSize(1 + 8);
      }
    }
  }

  private static byte[] now(HostReadServer server, byte[] request) throws IOException {
    CompletableFuture<byte[]> answer = server.answer(request);
    assertThat(answer).isDone();
    return answer.join();
  }
}
