package io.weft.transfers;

import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Device;
import io.weft.device.HostEvent;
import io.weft.memory.Memory;
import io.weft.tensor.codec.CodecKind;
import io.weft.tensor.codec.CorruptTensorException;
import io.weft.transfers.GroupMoves.CodedGroup;
import io.weft.transfers.GroupMoves.CodedGroup.CodedTransfer;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.PreparedTransfer.TransferEndpoints;
import io.weft.transfers.TransferCounter.TransferCounters;
import io.weft.transfers.TransferEncoding.CodecThreads;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Invalid or special lengths of chunks that a peer may send. */
class CodedGroupTest {
  private static final int COUNT = 1000;

  private final CodecThreads coders = new CodecThreads("0", new TransferCounters());
  private final AtomicInteger out = new AtomicInteger();

  @AfterEach
  void close() {
    coders.close();
  }

  /** A peer that sends one length, and then that many zeros. */
  private static final class Peer implements TransferWire {
    private final long sentLength;
    private long receivedLength;
    private int moves;

    Peer(long sentLength) {
      this.sentLength = sentLength;
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      moves++;
      for (TypedBuffer buffer : sends) {
        receivedLength =
            buffer.type() == DataType.INT64 ? Memory.getLong(buffer.address()) : receivedLength;
      }
      for (TypedBuffer buffer : receives) {
        Memory.setMemory(buffer.address(), buffer.bytes(), (byte) 0);
        if (buffer.type() == DataType.INT64) {
          Memory.putLong(buffer.address(), sentLength);
        }
      }
    }

    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      return List.of();
    }

    @Override
    public Optional<RuntimeException> failure() {
      return Optional.empty();
    }

    @Override
    public void abort(String reason) {}
  }

  private PreparedTransfer transfer(boolean sends, DataType type) {
    return transfer(sends, type, coders);
  }

  private PreparedTransfer transfer(boolean sends, DataType type, CodecThreads by) {
    CliqueKey clique =
        new CliqueKey(
            List.of(
                new CliqueMember("0", "first", Device.HOST),
                new CliqueMember("1", "first", Device.HOST)),
            "transfers");
    long bytes = TransferEncoding.stagingBytes(CodecKind.FLOAT8_E4M3, type, COUNT);
    ByteBuffer memory = ByteBuffer.allocateDirect((int) bytes);
    out.incrementAndGet();
    TransferBuffer staging =
        new TransferBuffer(Memory.addressOf(memory), bytes, out::decrementAndGet);
    return new PreparedTransfer(
        clique,
        new TransferEndpoints(device(0), device(1), sends),
        7,
        TransferAttempt.NONE,
        Content.of(BufferShape.of(type, COUNT), 1),
        new TransferEncoding(CodecKind.FLOAT8_E4M3, staging, by),
        HostEvent.completed("its source"));
  }

  @Test
  void aFailedEncodingReachesThePeerAndFailsOnlyItsTransfer() {
    PreparedTransfer wrong = transfer(true, DataType.INT32);
    Peer peer = new Peer(0);
    CodedGroup group = new CodedGroup(List.of(wrong), List.of());
    group.move(peer, List.of(), List.of());
    assertThat(peer.receivedLength).isEqualTo(CodedTransfer.NONE);
    assertThat(peer.moves).isEqualTo(1);
    assertThat(group.failedSends()).isEqualTo(1);
    assertThat(Content.failure(wrong.event())).hasMessageContaining("does not encode int32");
    assertThat(out).hasValue(0);
  }

  @Test
  void aPeerThatCouldNotEncodeFailsTheReceive() {
    PreparedTransfer receive = transfer(false, DataType.FLOAT32);
    CodedGroup group = new CodedGroup(List.of(), List.of(receive));
    group.move(new Peer(CodedTransfer.NONE), List.of(), List.of());
    assertThat(group.failedReceives()).isEqualTo(1);
    assertThat(Content.failure(receive.event()))
        .hasMessageContaining("executor 1/device 0 could not encode its chunk 0");
    assertThat(out).hasValue(0);
  }

  /** A late coder writes into its transfer's memory only. */
  @Test
  void memoryIsKeptForCodersThatAreLate() throws Exception {
    CountDownLatch free = new CountDownLatch(1);
    try (CodecThreads busy = new CodecThreads("1", new TransferCounters(), Duration.ofMillis(20))) {
      List<Future<?>> others = new ArrayList<>();
      for (int i = 0; i < Runtime.getRuntime().availableProcessors(); i++) {
        others.add(
            busy.submit(TransferCounter.CHUNKS_ENCODED, () -> free.await(30, TimeUnit.SECONDS)));
      }
      PreparedTransfer late = transfer(true, DataType.FLOAT32, busy);
      CodedGroup group = new CodedGroup(List.of(late), List.of());
      group.move(new Peer(0), List.of(), List.of());
      assertThat(Content.failure(late.event()))
          .hasMessageContaining("was not encoded or decoded within 20 ms");
      late.end(new IllegalStateException("once more"));
      assertThat(out).as("memory in use while the chunk waits for a coder").hasValue(1);
      free.countDown();
      for (Future<?> other : others) {
        assertThat(other.get(30, TimeUnit.SECONDS)).isEqualTo(true);
      }
    } finally {
      free.countDown();
    }
    assertThat(out).as("memory in use after the coder's end").hasValue(0);
  }

  /** An invalid length breaks the wire; no access is outside of the slot. */
  @Test
  void anInvalidLengthBreaksTheWire() {
    for (long length : new long[] {0, -2, 1 << 20, Long.MAX_VALUE, Long.MIN_VALUE}) {
      PreparedTransfer receive = transfer(false, DataType.FLOAT32);
      CodedGroup group = new CodedGroup(List.of(), List.of(receive));
      assertThatThrownBy(() -> group.move(new Peer(length), List.of(), List.of()))
          .isInstanceOf(CorruptTensorException.class)
          .hasMessageContaining("is to have " + length + " bytes");
      receive.close();
    }
  }
}
