package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.channel.embedded.EmbeddedChannel;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.net.ServedStreams.ServedStream;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Peers that open streams and do not request them, or cannot request them yet. */
class ServedStreamsTest {
  private static final long TIMEOUT = Duration.ofSeconds(1).toNanos();

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
  void anUnrequestedStreamIsDropped() {
    ServedStream stream = stream(channel);
    streams.register(stream);
    streams.dropStalled(TIMEOUT, stream.lastProgress() + TIMEOUT);
    assertThat(streams.open()).isEqualTo(1);
    streams.dropStalled(TIMEOUT, stream.lastProgress() + TIMEOUT + 1);
    assertThat(streams.open()).isZero();
  }

  /** The peer cannot have its answer yet, because it waits behind the stream that is being sent. */
  @Test
  void aStreamBehindAMovingStreamIsKept() {
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
    assertThat(streams.open()).as("all but the stream of another connection").isEqualTo(2);
  }

  @Test
  void aStreamBehindAJustEndedStreamIsKept() {
    ServedStream moving = stream(channel);
    StreamId first = streams.register(moving);
    ServedStream waiting = stream(channel);
    streams.register(waiting);
    assertThat(streams.openStream(first.toString())).isNotNull();
    awaitLaterThan(waiting.lastProgress());
    long before = System.nanoTime();
    streams.streamSent(first.toString());
    long now = System.nanoTime();
    long timeout = now - before;
    assertThat(now - waiting.lastProgress()).as("age of the stream").isGreaterThan(timeout);
    streams.dropStalled(timeout, now);
    assertThat(streams.open()).isEqualTo(1);
    streams.dropStalled(timeout, now + timeout + 1);
    assertThat(streams.open()).as("the peer has been silent since").isZero();
  }
}
