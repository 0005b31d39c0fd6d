package io.weft.tcp;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.weft.wire.StreamId;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Who opens streams and does not ask for them, and who cannot ask yet. */
class ServedStreamsTest {
  private static final long PATIENCE = Duration.ofSeconds(1).toNanos();

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

  private static void awaitLaterThan(long nanoTime) {
    while (System.nanoTime() - nanoTime <= 0) {
      Thread.onSpinWait();
    }
  }

  @Test
  void whatNobodyAsksForIsDropped() {
    ServedStream stream = stream(channel);
    streams.register(stream);
    streams.dropStalled(PATIENCE, stream.lastProgress() + PATIENCE);
    assertThat(streams.open()).isEqualTo(1);
    streams.dropStalled(PATIENCE, stream.lastProgress() + PATIENCE + 1);
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
    awaitLaterThan(elsewhere.lastProgress());
    moving.progressed();
    long now = moving.lastProgress();
    streams.dropStalled(now - elsewhere.lastProgress() - 1, now);
    assertThat(streams.open()).as("but for the one on another connection").isEqualTo(2);
  }

  @Test
  void whatIsOpenedBehindAStreamThatHasJustEndedIsKept() {
    ServedStream moving = stream(channel);
    StreamId first = streams.register(moving);
    ServedStream waiting = stream(channel);
    streams.register(waiting);
    assertThat(streams.openStream(first.toString())).isNotNull();
    awaitLaterThan(waiting.lastProgress());
    long before = System.nanoTime();
    streams.streamSent(first.toString());
    long now = System.nanoTime();
    long patience = now - before;
    assertThat(now - waiting.lastProgress()).as("it is old itself").isGreaterThan(patience);
    streams.dropStalled(patience, now);
    assertThat(streams.open()).isEqualTo(1);
    streams.dropStalled(patience, now + patience + 1);
    assertThat(streams.open()).as("the peer has been silent since").isZero();
  }
}
