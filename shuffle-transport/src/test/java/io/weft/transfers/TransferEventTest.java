package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.local.LocalCommunicator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The events of transfers, and of the collectives that move them, in a recording. */
class TransferEventTest extends TransferFixture {
  private static final BufferShape SHAPE = BufferShape.of(DataType.INT32, 256);

  @TempDir private Path recordings;

  @Override
  Executors.Communicators communicators() {
    return (folder, executor) -> LocalCommunicator::create;
  }

  private List<RecordedEvent> recorded(Runnable work) throws IOException {
    Path file = Files.createTempFile(recordings, "", ".jfr");
    try (Recording recording = new Recording()) {
      recording.enable("weft.Transfer");
      recording.enable("weft.Collective");
      recording.start();
      work.run();
      recording.stop();
      recording.dump(file);
    }
    return RecordingFile.readAllEvents(file);
  }

  private void transfer() {
    DeferredTransfer sent = executors.get(0).place(List.of(placement(0, 0, 1, SHAPE, 7))).get(0);
    DeferredTransfer received =
        executors.get(1).place(List.of(placement(1, 0, 1, SHAPE, 7))).get(0);
    var unused = sent.event().toFuture();
    await(received.event());
    await(sent.event());
    // The communicators are closed, so all their operations have ended.
    sent.close();
    received.close();
    executors.close();
  }

  @Test
  void bothEndsOfATransferAndItsOperationsAreRecorded() throws IOException {
    open(TransferOptions.DEFAULT.withDeadline(DEADLINE));
    executors.start(2);
    List<RecordedEvent> events = recorded(this::transfer);
    List<RecordedEvent> ends =
        events.stream()
            .filter(event -> event.getEventType().getName().equals("weft.Transfer"))
            .toList();
    assertThat(ends)
        .extracting(event -> event.getString("direction"))
        .containsExactlyInAnyOrder("send", "receive");
    assertThat(ends)
        .allSatisfy(
            event -> {
              assertThat(event.getLong("bytes")).isEqualTo(1024);
              assertThat(event.getLong("key")).isEqualTo(7);
              assertThat(event.getString("failure")).isEmpty();
              assertThat(event.getString("device")).isNotEqualTo(event.getString("peer"));
            });
    assertThat(events)
        .filteredOn(event -> event.getEventType().getName().equals("weft.Collective"))
        .isNotEmpty()
        .allSatisfy(event -> assertThat(event.getInt("ranks")).isEqualTo(2))
        .anySatisfy(event -> assertThat(event.getLong("bytes")).isEqualTo(1024));
  }
}
