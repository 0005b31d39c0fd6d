package io.weft.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.weft.wire.StreamId;
import java.time.Duration;
import java.util.List;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who opens streams and does not ask for them, and who cannot ask yet. */
class ServedStreamsTest {
  private static final long PATIENCE = Duration.ofMillis(400).toNanos();

  private final ServedStreams streams = new ServedStreams(4096);
  private final EmbeddedChannel channel = new EmbeddedChannel();
  private final EmbeddedChannel other = new EmbeddedChannel();

  @AfterEach
  void close() {
    channel.finish();
    other.finish();
  }

  private static ServedStream stream(EmbeddedChannel channel) {
    return new ServedStream(channel, List.of(), null);
  }

  private static void awaitAge(ServedStream stream) {
    Awaitility.await("a stream that is old")
        .until(() -> System.nanoTime() - stream.lastProgress() > 2 * PATIENCE);
  }

  @Test
  void whatNobodyAsksForIsDropped() {
    ServedStream stream = stream(channel);
    streams.register(stream);
    streams.dropStalled(PATIENCE * 1000);
    assertThat(streams.open()).isEqualTo(1);
    awaitAge(stream);
    streams.dropStalled(PATIENCE);
    assertThat(streams.open()).isZero();
  }

  /** Its answer is still behind the stream that is being sent. */
  @Test
  void whatIsOpenedBehindAStreamThatMovesIsKept() {
    ServedStream moving = stream(channel);
    StreamId first = streams.register(moving);
    ServedStream waiting = stream(channel);
    streams.register(waiting);
    ServedStream elsewhere = stream(other);
    streams.register(elsewhere);
    assertThat(streams.openStream(first.toString())).isNotNull();
    awaitAge(elsewhere);
    moving.progressed();
    streams.dropStalled(PATIENCE);
    assertThat(streams.open()).as("but for the one on another connection").isEqualTo(2);
  }

  @Test
  void whatIsOpenedBehindAStreamThatHasJustEndedIsKept() {
    ServedStream moving = stream(channel);
    StreamId first = streams.register(moving);
    ServedStream waiting = stream(channel);
    streams.register(waiting);
    assertThat(streams.openStream(first.toString())).isNotNull();
    awaitAge(waiting);
    streams.streamSent(first.toString());
    streams.dropStalled(PATIENCE);
    assertThat(streams.open()).isEqualTo(1);
    Awaitility.await("the peer has been silent since")
        .until(
            () -> {
              streams.dropStalled(PATIENCE);
              return streams.open() == 0;
            });
  }
}
