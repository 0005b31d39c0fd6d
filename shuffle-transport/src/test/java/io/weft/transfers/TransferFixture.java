package io.weft.transfers;

import static io.weft.transfers.Content.await;
import static io.weft.transfers.Content.ints;
import static io.weft.transfers.Executors.device;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Event;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Executors that are closed after each test, and helpers of most tests. */
abstract class TransferFixture {
  static final Duration DEADLINE = Duration.ofSeconds(60);

  @TempDir Path folder;

  Executors executors;

  /** The kind of communicators under test. */
  abstract Executors.Communicators communicators();

  @BeforeEach
  void open() {
    open(TransferOptions.DEFAULT.withDeadline(DEADLINE).withBatchAge(DEADLINE));
  }

  void open(TransferOptions options) {
    close();
    executors = new Executors(folder, communicators(), options);
  }

  @AfterEach
  void close() {
    if (executors != null) {
      executors.close();
    }
  }

  static long[] keys(long... keys) {
    return keys;
  }

  /** Arrays of this executor, one for each seed. */
  List<SourceBuffer> sources(int executor, long... seeds) {
    List<SourceBuffer> sources = new ArrayList<>();
    for (long seed : seeds) {
      sources.add(SourceBuffer.of(device(executor), placed(executor, ints(256, seed))));
    }
    return sources;
  }

  /** An array in the memory of an executor's device. */
  TypedBuffer placed(int executor, TypedBuffer array) {
    return array;
  }

  static <T> List<T> times(int count, T value) {
    return IntStream.range(0, count).mapToObj(i -> value).toList();
  }

  static List<BufferShape> shapes(int count) {
    return times(count, BufferShape.of(DataType.INT32, 256));
  }

  List<Event> send(int from, int to, long... keys) {
    return executors.get(from).send(sources(from, keys), times(keys.length, device(to)), keys);
  }

  List<ReceivedBuffer> receive(int to, int from, long... keys) {
    return executors
        .get(to)
        .receive(device(to), shapes(keys.length), times(keys.length, device(from)), keys);
  }

  /** A received array, copied to host memory. */
  TypedBuffer onHost(TypedBuffer buffer) {
    return buffer;
  }

  void check(TypedBuffer buffer, long seed) {
    Content.check(onHost(buffer), seed);
  }

  /** Waits for all arrays and checks them; the seeds are the keys. */
  void checkAll(List<ReceivedBuffer> received, long... keys) {
    for (int i = 0; i < keys.length; i++) {
      await(received.get(i).event());
      check(received.get(i).buffer(), keys[i]);
      received.get(i).close();
    }
  }

  /** Checks that the pair works, with a transfer from 0 to 1. */
  void exchange(long key) {
    List<ReceivedBuffer> received = receive(1, 0, key);
    send(0, 1, key).forEach(Content::await);
    checkAll(received, key);
  }

  ArrayPlacement placement(int executor, int from, int to, BufferShape shape, long key) {
    return executor == from
        ? placement(placed(from, Content.of(shape, key)), from, to, shape, key)
        : ArrayPlacement.of(device(from), device(to), shape, key);
  }

  /** The placement of the source's executor. */
  static ArrayPlacement placement(TypedBuffer data, int from, int to, BufferShape shape, long key) {
    return ArrayPlacement.of(SourceBuffer.of(device(from), data), device(to), shape, key);
  }
}
