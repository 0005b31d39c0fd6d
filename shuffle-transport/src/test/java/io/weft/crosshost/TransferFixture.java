package io.weft.crosshost;

import static io.weft.crosshost.Content.await;
import static io.weft.crosshost.Content.ints;
import static io.weft.crosshost.Executors.device;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.crosshost.buffer.BufferShape;
import io.weft.device.Event;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** Executors that are closed after each test, and what most tests do with them. */
abstract class TransferFixture {
  static final Duration DEADLINE = Duration.ofSeconds(60);

  @TempDir Path folder;

  Executors executors;

  /** What is tested. */
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

  /** Arrays of this executor, as many as seeds. */
  List<SourceBuffer> sources(int executor, long... seeds) {
    List<SourceBuffer> sources = new ArrayList<>();
    for (long seed : seeds) {
      sources.add(SourceBuffer.of(device(executor), placed(executor, ints(256, seed))));
    }
    return sources;
  }

  /** An array where an executor's device has it. */
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

  /** An array that arrived, in memory of the host. */
  TypedBuffer onHost(TypedBuffer buffer) {
    return buffer;
  }

  void check(TypedBuffer buffer, long seed) {
    Content.check(onHost(buffer), seed);
  }

  /** Waits for all; the arrays' seeds are their keys. */
  void checkAll(List<ReceivedBuffer> received, long... keys) {
    for (int i = 0; i < keys.length; i++) {
      await(received.get(i).event());
      check(received.get(i).buffer(), keys[i]);
      received.get(i).close();
    }
  }

  /** Sends and receives, from 0 to 1; the pair works. */
  void exchange(long key) {
    List<ReceivedBuffer> received = receive(1, 0, key);
    send(0, 1, key).forEach(Content::await);
    checkAll(received, key);
  }

  Placement placement(int executor, int from, int to, BufferShape shape, long key) {
    return executor == from
        ? placement(placed(from, Content.of(shape, key)), from, to, shape, key)
        : Placement.of(device(from), device(to), shape, key);
  }

  /** As the source's executor sees it. */
  static Placement placement(TypedBuffer data, int from, int to, BufferShape shape, long key) {
    return Placement.of(SourceBuffer.of(device(from), data), device(to), shape, key);
  }
}
