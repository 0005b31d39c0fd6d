package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.failure;
import static io.weft.transfers.Executors.device;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import io.weft.memory.Memory;
import io.weft.tensor.codec.CodecKind;
import io.weft.tensor.codec.CorruptTensorException;
import io.weft.tensor.codec.TensorEncoder;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** The contract of encoded transfers, for every kind of communicator. */
abstract class CodedTransferContract extends TransferFixture {
  /** Four chunks, the last of them short. */
  private static final int COUNT = 3 * TensorEncoder.PIECE_ELEMENTS + 17;

  private static final int LAST = COUNT - 1;
  private static final BufferShape SHAPE = BufferShape.of(DataType.FLOAT32, COUNT);
  private static final int HEADER = 24;

  /** Small numbers that every codec keeps exactly: 1, 2, 4 or 8, of either sign. */
  private static TypedBuffer numbers() {
    TypedBuffer numbers = Content.of(SHAPE, 1);
    for (int i = 0; i < COUNT; i++) {
      int noise = Memory.getByte(numbers.address() + 4L * i);
      put(numbers, i, (noise < 0 ? -1f : 1f) * (1 << (noise & 3)));
    }
    return numbers;
  }

  private static void put(TypedBuffer numbers, int index, float value) {
    Memory.putFloat(numbers.address() + 4L * index, value);
  }

  private static float get(TypedBuffer numbers, int index) {
    return Memory.getFloat(numbers.address() + 4L * index);
  }

  private static void assertEqual(TypedBuffer actual, TypedBuffer expected) {
    for (int i = 0; i < COUNT; i++) {
      if (get(actual, i) != get(expected, i)) {
        assertThat(get(actual, i)).as("element %s", i).isEqualTo(get(expected, i));
      }
    }
  }

  private Event send(TypedBuffer numbers, long key, CodecKind codec) {
    List<SourceBuffer> source = List.of(SourceBuffer.of(device(0), numbers));
    return executors.get(0).send(source, List.of(device(1)), keys(key), codec).get(0);
  }

  private ReceivedBuffer receive(BufferShape shape, long key, CodecKind codec) {
    return executors
        .get(1)
        .receive(device(1), List.of(shape), List.of(device(0)), keys(key), codec)
        .get(0);
  }

  private void watch(WatchedWire.Watch watch) {
    executors.wires(communicator -> new WatchedWire(communicator, watch)).start(2);
  }

  /** Sends an array from 0 to 1. Returns the received array, which the caller closes. */
  private ReceivedBuffer transfer(TypedBuffer numbers, CodecKind codec) {
    ReceivedBuffer received = receive(SHAPE, 5, codec);
    Event sent = send(numbers, 5, codec);
    await(received.event());
    await(sent);
    return received;
  }

  /** 24 bytes of header, 8 for each chunk's length, and the elements. */
  @ParameterizedTest
  @CsvSource({"BFLOAT16, 2", "FLOAT8_E4M3, 1", "FLOAT8_E5M2, 1"})
  void bytesOnTheWireAreHalfOrAQuarterAndAHeader(CodecKind codec, int width) {
    WatchedWire.Watch watch = new WatchedWire.Watch();
    watch(watch);
    TypedBuffer numbers = numbers();
    try (ReceivedBuffer received = transfer(numbers, codec)) {
      assertEqual(received.buffer(), numbers);
    }
    assertEqual(numbers, numbers());
    long expected = (long) width * COUNT + HEADER + 4 * Long.BYTES;
    assertThat(watch.sentBytes).hasValue(expected);
    assertThat(executors.count(0, TransferCounter.BYTES_SENT)).isEqualTo(expected);
    assertThat(executors.count(1, TransferCounter.BYTES_RECEIVED)).isEqualTo(expected);
    assertThat(executors.count(0, TransferCounter.CHUNKS_ENCODED)).isEqualTo(4);
    assertThat(executors.count(1, TransferCounter.CHUNKS_DECODED)).isEqualTo(4);
  }

  @Test
  void losslessCodecsSendFewerBytes() {
    WatchedWire.Watch watch = new WatchedWire.Watch();
    watch(watch);
    TypedBuffer numbers = numbers();
    try (ReceivedBuffer received = transfer(numbers, CodecKind.ZSTD)) {
      assertEqual(received.buffer(), numbers);
    }
    assertThat(watch.sentBytes).hasValueLessThan(COUNT);
  }

  @Test
  void noneIsOneMessageOfTheElementsWithoutAChunk() {
    WatchedWire.Watch watch = new WatchedWire.Watch();
    watch(watch);
    transfer(numbers(), CodecKind.NONE).close();
    assertThat(watch.sentBytes).hasValue(4L * COUNT);
    assertThat(executors.count(0, TransferCounter.CHUNKS_ENCODED)).isZero();
  }

  /** The source changes after the first chunk; only later chunks see the change. */
  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void theFirstChunkHasArrivedBeforeTheLastIsEncoded(CodecKind codec) {
    TypedBuffer numbers = numbers();
    put(numbers, LAST, 1);
    watch(
        new WatchedWire.Watch() {
          private final CountDownLatch arrived = new CountDownLatch(1);

          @Override
          void after(int rank, int chunk, TypedBuffer body) {
            if (rank == 1) {
              arrived.countDown();
            } else if (chunk == 0) {
              Awaitility.await("the first chunk").until(() -> arrived.getCount() == 0);
              put(numbers, LAST, 2);
            }
          }
        });
    try (ReceivedBuffer received = transfer(numbers, codec)) {
      assertThat(get(received.buffer(), LAST)).isEqualTo(2);
    }
  }

  /** A chunk is held until the next is encoded here and the previous one is decoded there. */
  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "NONE")
  void chunksAreEncodedAndDecodedWhileOthersAreOnTheirWay(CodecKind codec) {
    watch(
        new WatchedWire.Watch() {
          @Override
          void before(int rank, int chunk, TypedBuffer body) {
            TransferCounter counter =
                rank == 0 ? TransferCounter.CHUNKS_ENCODED : TransferCounter.CHUNKS_DECODED;
            int wanted = rank == 0 ? Math.min(4, chunk + 2) : chunk;
            Awaitility.await("chunks at rank " + rank)
                .atMost(Duration.ofSeconds(30))
                .until(() -> executors.count(rank, counter) >= wanted);
          }
        });
    TypedBuffer numbers = numbers();
    try (ReceivedBuffer received = transfer(numbers, codec)) {
      assertEqual(received.buffer(), numbers);
    }
  }

  @Test
  void anUnexpectedCodecFailsOnlyThatTransferAtBothEnds() {
    executors.start(2);
    Event sent = send(numbers(), 7, CodecKind.BFLOAT16);
    ReceivedBuffer received = receive(SHAPE, 7, CodecKind.NONE);
    String text =
        "sends key 7 (%d float32 as BFLOAT16) but executor 1/device 0 receives key 7 (%d float32)"
            .formatted(COUNT, COUNT);
    assertThat(failure(sent)).hasMessageContaining(text);
    assertThat(failure(received.event())).hasMessageContaining(text);
    received.close();
    transfer(numbers(), CodecKind.BFLOAT16).close();
    assertThat(executors.get(1).statistics().cliques().created()).isEqualTo(1);
  }

  /** Both directions at once, plain and encoded, of several lengths, in one deferred batch. */
  @Test
  void encodedArraysShareABatchWithOthers() {
    executors.start(2);
    BufferShape small = BufferShape.of(DataType.FLOAT32, 3);
    BufferShape ints = BufferShape.of(DataType.INT64, 2, TensorEncoder.PIECE_ELEMENTS);
    List<List<DeferredTransfer>> placed =
        List.of(placeAll(0, small, ints), placeAll(1, small, ints));
    for (List<DeferredTransfer> transfers : placed) {
      transfers.forEach(transfer -> await(transfer.event()));
    }
    Content.check(placed.get(1).get(0).received().orElseThrow().buffer(), 1);
    Content.check(placed.get(0).get(1).received().orElseThrow().buffer(), 2);
    Content.check(placed.get(1).get(2).received().orElseThrow().buffer(), 3);
    Content.check(placed.get(1).get(3).received().orElseThrow().buffer(), 4);
    placed.forEach(transfers -> transfers.forEach(DeferredTransfer::close));
    assertThat(executors.get(1).statistics().buffers().out()).isZero();
    assertThat(executors.get(0).statistics().buffers().out()).isZero();
  }

  private List<DeferredTransfer> placeAll(int executor, BufferShape small, BufferShape ints) {
    List<DeferredTransfer> encoded =
        executors
            .get(executor)
            .place(
                List.of(
                    placement(executor, 0, 1, ints, 1),
                    placement(executor, 1, 0, small, 2),
                    placement(executor, 0, 1, small, 3)),
                CodecKind.ZSTD);
    List<DeferredTransfer> plain =
        executors.get(executor).place(List.of(placement(executor, 0, 1, ints, 4)));
    return List.of(encoded.get(0), encoded.get(1), encoded.get(2), plain.get(0));
  }

  @Test
  void unsupportedTypesAreRefusedBeforeAnythingIsSent() {
    executors.start(2);
    BufferShape ints = BufferShape.of(DataType.INT32, 256);
    List<SourceBuffer> sources = sources(0, 1);
    List<DeviceId> there = List.of(device(1));
    String text = "transfer 0: FLOAT8_E4M3 does not encode int32";
    assertThatThrownBy(() -> executors.get(0).send(sources, there, keys(1), CodecKind.FLOAT8_E4M3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(text);
    assertThatThrownBy(() -> receive(ints, 1, CodecKind.FLOAT8_E4M3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(text);
    ArrayPlacement placement =
        new ArrayPlacement(device(0), device(1), ints, 1, Optional.of(sources.get(0)));
    assertThatThrownBy(() -> executors.get(0).place(List.of(placement), CodecKind.FLOAT8_E4M3))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(text);
    assertThat(executors.get(1).statistics().buffers().out()).isZero();
    exchange(9);
  }

  /** A damaged chunk fails its transfer; all chunks are received and other transfers go on. */
  @Test
  void aDamagedChunkFailsItsTransferAlone() {
    watch(
        new WatchedWire.Watch() {
          @Override
          void after(int rank, int chunk, TypedBuffer body) {
            if (rank == 1 && chunk == 0) {
              Memory.putByte(body.address(), (byte) 0);
            }
          }
        });
    ReceivedBuffer received = receive(SHAPE, 5, CodecKind.BFLOAT16);
    Event sent = send(numbers(), 5, CodecKind.BFLOAT16);
    assertThat(failure(received.event()))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("key 5 from executor 0/device 0")
        .hasRootCauseInstanceOf(CorruptTensorException.class);
    await(sent);
    received.close();
    exchange(6);
    assertThat(executors.count(1, TransferCounter.FAILED)).isEqualTo(1);
    assertThat(executors.get(1).statistics().cliques().created()).isEqualTo(1);
    assertThat(executors.get(1).statistics().buffers().out()).isZero();
  }

  /** The wire breaks between two chunks: both ends end, and no memory leaks. */
  @Test
  void aWireThatBreaksBetweenTwoChunksEndsTheTransfer() {
    watch(
        new WatchedWire.Watch() {
          @Override
          void before(int rank, int chunk, TypedBuffer body) {
            if (rank == 0 && chunk == 2) {
              throw new IllegalStateException("the wire is cut, as the test asked");
            }
          }
        });
    ReceivedBuffer received = receive(SHAPE, 5, CodecKind.ZSTD);
    Event sent = send(numbers(), 5, CodecKind.ZSTD);
    assertThat(failure(sent)).hasMessageContaining("the wire is cut");
    assertThat(failure(received.event())).hasMessageContaining("the wire is cut");
    received.close();
    // The events fail at once; the memory is freed when the wire is closed.
    Awaitility.await("the memory of all transfers")
        .atMost(Duration.ofSeconds(30))
        .until(
            () ->
                executors.get(0).statistics().buffers().out() == 0
                    && executors.get(1).statistics().buffers().out() == 0);
  }
}
