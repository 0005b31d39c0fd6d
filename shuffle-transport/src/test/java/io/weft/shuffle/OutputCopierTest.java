package io.weft.shuffle;

import static io.weft.shuffle.peer.ExchangeCounter.CHECKSUM_FAILURES;
import static io.weft.shuffle.peer.ExchangeCounter.COPIES_FAILED;
import static io.weft.shuffle.peer.ExchangeCounter.COPIES_SKIPPED;
import static io.weft.shuffle.peer.ExchangeCounter.COPY_BLOCKS_READ;
import static io.weft.support.TestBlocks.expected;
import static io.weft.support.TestBlocks.readAll;
import static io.weft.support.TestBlocks.request;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.shuffle.ExchangeOptions.CopyListener;
import io.weft.shuffle.ExchangeOptions.CopyOptions;
import io.weft.shuffle.fetch.BlockFetchException;
import io.weft.shuffle.fetch.BlockReaders.Copies;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.FetchInterruptedException;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.CopyStore;
import io.weft.shuffle.store.IncomingOutput;
import io.weft.support.TestBlocks;
import io.weft.support.TestCluster;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.Logger;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Property;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Map outputs are copied, and read after their executor has ended. */
class OutputCopierTest {
  private static final String COPIES = "copies";
  private static final int PARTITIONS = 3;

  @TempDir Path folder;

  private final MemoryStore store = new MemoryStore(new ConcurrentHashMap<>(), "owner");
  private final List<BlockKey> copied = new CopyOnWriteArrayList<>();
  private final List<BlockKey> leaving = new CopyOnWriteArrayList<>();
  private final List<BlockKey> ofOthers = new CopyOnWriteArrayList<>();
  private final List<BlockKey> asked = new CopyOnWriteArrayList<>();
  private final Set<BlockKey> known = ConcurrentHashMap.newKeySet();
  private TestCluster cluster;

  @BeforeEach
  void start() throws IOException {
    cluster = new TestCluster(folder);
    limits(1L << 30, Duration.ofMinutes(5));
  }

  @AfterEach
  void stop() throws IOException {
    store.go.countDown();
    cluster.close();
  }

  private void limits(long maxBytes, Duration maxAge) {
    cluster.copies(Optional.of(new CopyOptions(store, COPIES, maxBytes, maxAge, new Driver())));
  }

  /** What the driver learns and knows. */
  private final class Driver implements CopyListener {
    @Override
    public boolean isCopied(BlockKey key) {
      asked.add(key);
      return known.contains(key);
    }

    @Override
    public void copied(BlockKey key, boolean own, boolean leaves) {
      (leaves ? leaving : copied).add(key);
      if (!own) {
        ofOthers.add(key);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void copiesAreReadWhenTheirExecutorHasEnded(boolean encrypted) throws IOException {
    if (encrypted) {
      cluster.encrypted();
    }
    ExecutorExchange owner = cluster.open("owner");
    write(owner, 1, 5);
    await().untilAsserted(() -> assertThat(copied).hasSize(5));
    owner.close();
    ExecutorExchange reader = cluster.open("reader");
    assertThat(readAll(reader, requests(5, 0, PARTITIONS)))
        .containsExactlyInAnyOrderElementsOf(
            expected(1, 0, 5, 0, PARTITIONS, OutputCopierTest::size));
    assertThat(readAll(reader, requests(5, 1, 2)))
        .containsExactlyInAnyOrderElementsOf(expected(1, 0, 5, 1, 2, OutputCopierTest::size));
    assertThat(reader.statistics().get(COPY_BLOCKS_READ)).isPositive();
    TestCluster.assertNothingHeld(reader);
  }

  @Test
  void encryptedCopiesHaveNoPlainBytes() throws IOException {
    cluster.encrypted();
    ExecutorExchange owner = cluster.open("owner");
    BlockKey key = new BlockKey(1, 0);
    byte[] plain = "many bytes that are easy to find".getBytes(StandardCharsets.UTF_8);
    try (var output = owner.newMapOutput(key, 1)) {
      var extent = output.allocate(plain.length);
      owner.arena().view(extent).slice(0, plain.length).put(plain);
      output.commit(0, extent, plain.length, 1);
      output.publish();
    }
    await().untilAsserted(() -> assertThat(copied).containsExactly(key));
    assertThat(new String(store.files.get(key), StandardCharsets.ISO_8859_1))
        .doesNotContain("easy to find");
  }

  /** Every byte counts: of the head, of the index and of chunks. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void damagedAndTruncatedCopiesAreErrors(boolean encrypted) throws IOException {
    if (encrypted) {
      cluster.encrypted();
    }
    ExecutorExchange owner = cluster.open("owner");
    write(owner, 1, 1);
    BlockKey key = new BlockKey(1, 0);
    await().untilAsserted(() -> assertThat(copied).containsExactly(key));
    byte[] intact = store.files.get(key);
    for (int at = 0; at < intact.length; at += 1 + intact.length / 97) {
      byte[] damaged = intact.clone();
      damaged[at] ^= 4;
      store.files.put(key, damaged);
      assertThatThrownBy(() -> readAll(owner, requests(1, 0, PARTITIONS)))
          .as("byte %d of %d", at, intact.length)
          .isInstanceOf(BlockFetchException.class);
    }
    store.files.put(key, Arrays.copyOf(intact, intact.length - 1));
    assertThatThrownBy(() -> readAll(owner, requests(1, 0, PARTITIONS)))
        .isInstanceOf(BlockFetchException.class)
        .hasMessageContaining("from its copy");
    store.files.remove(key);
    assertThatThrownBy(() -> readAll(owner, requests(1, 0, PARTITIONS)))
        .isInstanceOf(BlockFetchException.class);
    assertThat(owner.statistics().get(CHECKSUM_FAILURES)).isPositive();
    owner.removeShuffle(1);
    TestCluster.assertNothingHeld(owner);
  }

  /** Only Spark's kill of a task interrupts its thread; then there is no fetch failure. */
  @Test
  void errorsOfTheStoreAreFetchFailuresUnlessTheTaskIsKilled() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    write(owner, 1, 1);
    await().untilAsserted(() -> assertThat(copied).hasSize(1));
    for (Exception failure :
        List.of(
            new SocketTimeoutException("no answer"),
            new InterruptedIOException("a pool of connections was closed"),
            new IllegalStateException("the client is closed"))) {
      store.readFailure = failure;
      assertThatThrownBy(() -> readAll(owner, requests(1, 0, PARTITIONS)))
          .isInstanceOf(BlockFetchException.class)
          .hasMessageContaining(failure.getMessage());
      assertThat(Thread.currentThread().isInterrupted()).isFalse();
    }
    store.readFailure = new InterruptedIOException("killed");
    store.interrupts = true;
    assertThatThrownBy(() -> readAll(owner, requests(1, 0, PARTITIONS)))
        .isInstanceOf(FetchInterruptedException.class);
    assertThat(Thread.interrupted()).isTrue();
    owner.removeShuffle(1);
    TestCluster.assertNothingHeld(owner);
  }

  @Test
  void outputsOfTheLatestShuffleAreCopiedFirst() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    store.block();
    write(owner, 1, 1);
    assertThat(store.entered.await(1, TimeUnit.MINUTES)).isTrue();
    write(owner, 2, 2);
    write(owner, 3, 2);
    store.go.countDown();
    await().untilAsserted(() -> assertThat(copied).hasSize(5));
    assertThat(copied.stream().map(BlockKey::shuffleId)).containsExactly(1, 3, 3, 2, 2);
  }

  @Test
  void beyondTheLimitOfBytesTheLeastLikelyToBeNeededAreLeftOut() throws Exception {
    limits(1, Duration.ofMinutes(5));
    ExecutorExchange owner = cluster.open("owner");
    store.block();
    write(owner, 1, 1);
    assertThat(store.entered.await(1, TimeUnit.MINUTES)).isTrue();
    write(owner, 2, 2);
    write(owner, 3, 1);
    store.go.countDown();
    await().untilAsserted(() -> assertThat(copied).hasSize(2));
    assertThat(copied.stream().map(BlockKey::shuffleId)).containsExactly(1, 3);
    assertThat(owner.statistics().get(COPIES_SKIPPED)).isEqualTo(2);
  }

  @Test
  void outputsThatWaitTooLongAreLeftOut() throws IOException {
    limits(1L << 30, Duration.ZERO);
    ExecutorExchange owner = cluster.open("owner");
    write(owner, 1, 3);
    await().untilAsserted(() -> assertThat(owner.statistics().get(COPIES_SKIPPED)).isEqualTo(3));
    assertThat(store.files).isEmpty();
  }

  @Test
  void aShuffleThatIsRemovedWhileItIsCopiedLeavesNothing() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    store.block();
    write(owner, 1, 3);
    assertThat(store.entered.await(1, TimeUnit.MINUTES)).isTrue();
    owner.removeShuffle(1);
    store.go.countDown();
    write(owner, 2, 1);
    await().untilAsserted(() -> assertThat(copied).containsExactly(new BlockKey(2, 0)));
    assertThat(store.files).containsOnlyKeys(new BlockKey(2, 0));
    assertThat(owner.statistics().get(COPIES_FAILED)).isZero();
    await().untilAsserted(() -> assertThat(owner.statistics().retiredBytes()).isZero());
  }

  /** A place that does not answer must not keep the shuffle's memory, or other copies from it. */
  @Test
  void theRemovalOfAShuffleEndsItsCopyInProgress() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    store.block();
    write(owner, 1, 1);
    assertThat(store.entered.await(1, TimeUnit.MINUTES)).isTrue();
    store.go = new CountDownLatch(0);
    owner.removeShuffle(1);
    write(owner, 2, 1);
    await().untilAsserted(() -> assertThat(copied).containsExactly(new BlockKey(2, 0)));
    await().untilAsserted(() -> assertThat(owner.statistics().retiredBytes()).isZero());
    assertThat(owner.statistics().get(COPIES_FAILED)).isZero();
  }

  @Test
  void aFailedCopyLeavesNoFileAndIsMadeAgainOnRequest() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    store.fails = true;
    write(owner, 1, 1);
    await().untilAsserted(() -> assertThat(owner.statistics().get(COPIES_FAILED)).isEqualTo(1));
    assertThat(store.files).isEmpty();
    BlockKey key = new BlockKey(1, 0);
    assertThatThrownBy(() -> owner.copyNow(key)).isInstanceOf(IOException.class);
    store.fails = false;
    assertThat(owner.copyNow(key)).isTrue();
    assertThat(owner.copyNow(key)).as("copied before").isTrue();
    assertThat(leaving).containsExactly(key, key);
    assertThat(asked).as("requests about own outputs").isEmpty();
    assertThat(store.files).containsOnlyKeys(key);
  }

  /** An output without rows has no file, so its copy says nothing about the store. */
  @Test
  void onlyTheFirstFailureInARowIsAWarning() throws Exception {
    List<String> warnings = new CopyOnWriteArrayList<>();
    AbstractAppender noting =
        new AbstractAppender("noting", null, null, true, Property.EMPTY_ARRAY) {
          @Override
          public void append(LogEvent event) {
            warnings.add(event.getMessage().getFormattedMessage());
          }
        };
    noting.start();
    Logger log = (Logger) LogManager.getLogger(OutputCopier.class);
    log.addAppender(noting);
    try {
      ExecutorExchange owner = cluster.open("owner");
      store.fails = true;
      write(owner, 1, 1);
      await().untilAsserted(() -> assertThat(owner.statistics().get(COPIES_FAILED)).isEqualTo(1));
      BlockKey empty = new BlockKey(2, 0);
      TestBlocks.write(owner, empty, PARTITIONS, (map, partition, chunk) -> 0);
      await().untilAsserted(() -> assertThat(copied).containsExactly(empty));
      write(owner, 3, 1);
      await().untilAsserted(() -> assertThat(owner.statistics().get(COPIES_FAILED)).isEqualTo(2));
      assertThat(warnings).singleElement().asString().contains("shuffle 1 map 0 was not copied");

      store.fails = false;
      write(owner, 4, 1);
      await().untilAsserted(() -> assertThat(copied).contains(new BlockKey(4, 0)));
      store.fails = true;
      write(owner, 5, 1);
      await().untilAsserted(() -> assertThat(warnings).hasSize(2));
      assertThat(warnings).last().asString().contains("shuffle 5 map 0 was not copied");
    } finally {
      log.removeAppender(noting);
    }
  }

  /** For example if a class of the file system is missing. Later copies are still made. */
  @Test
  void anErrorOfTheStoreDoesNotEndTheThread() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    store.breaks = true;
    write(owner, 1, 1);
    await().untilAsserted(() -> assertThat(owner.statistics().get(COPIES_FAILED)).isEqualTo(1));
    store.breaks = false;
    write(owner, 2, 1);
    await().untilAsserted(() -> assertThat(copied).containsExactly(new BlockKey(2, 0)));
  }

  @Test
  void aRequestedCopyIsMadeBeforeThoseThatWait() throws Exception {
    ExecutorExchange owner = cluster.open("owner");
    store.block();
    write(owner, 1, 1);
    assertThat(store.entered.await(1, TimeUnit.MINUTES)).isTrue();
    write(owner, 2, 2);
    BlockKey key = new BlockKey(1, 5);
    TestBlocks.write(owner, key, PARTITIONS, OutputCopierTest::size);
    CompletableFuture<Boolean> requested =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return owner.copyNow(key);
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
            });
    await()
        .until(
            () ->
                Thread.getAllStackTraces().entrySet().stream()
                    .anyMatch(
                        thread ->
                            Arrays.stream(thread.getValue())
                                .anyMatch(
                                    frame ->
                                        frame.getMethodName().equals("copyNow")
                                            && thread.getKey().getState()
                                                == Thread.State.TIMED_WAITING)));
    store.go.countDown();
    assertThat(requested.get(1, TimeUnit.MINUTES)).isTrue();
    await().untilAsserted(() -> assertThat(copied).hasSize(3));
    assertThat(leaving).containsExactly(key);
    assertThat(store.made.subList(0, 2)).containsExactly(new BlockKey(1, 0), key);
  }

  @Test
  void outputsOfOthersAreCopiedOnlyIfTheDriverKnowsNoCopy() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    cluster.copies(Optional.empty());
    ExecutorExchange former = cluster.open("former");
    known.add(new BlockKey(1, 0));
    write(former, 1, 2);
    for (int map = 0; map < 2; map++) {
      migrate(former, owner, new BlockKey(1, map));
    }
    await().untilAsserted(() -> assertThat(copied).containsExactly(new BlockKey(1, 1)));
    assertThat(owner.copyNow(new BlockKey(1, 0))).isTrue();
    assertThat(leaving).as("readers use the known copy").containsExactly(new BlockKey(1, 0));
    assertThat(ofOthers).containsExactly(new BlockKey(1, 0));
    assertThat(store.files).containsOnlyKeys(new BlockKey(1, 1));
  }

  /** A copy is forgotten if another one of its shuffle was not read. */
  @Test
  void aCopyThatTheDriverHasForgottenIsMadeAgain() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    cluster.copies(Optional.empty());
    ExecutorExchange former = cluster.open("former");
    BlockKey key = new BlockKey(1, 0);
    known.add(key);
    write(former, 1, 1);
    migrate(former, owner, key);
    assertThat(owner.copyNow(key)).isTrue();
    assertThat(ofOthers).containsExactly(key);
    known.clear();
    assertThat(owner.copyNow(key)).isTrue();
    assertThat(store.files).containsOnlyKeys(key);
    assertThat(ofOthers).as("of its own").containsExactly(key);
  }

  /** Most outputs of others have copies, so they must not push out those that have none. */
  @Test
  void outputsOfOthersDoNotCountAsWaiting() throws Exception {
    limits(1, Duration.ofMinutes(5));
    ExecutorExchange owner = cluster.open("owner");
    cluster.copies(Optional.empty());
    ExecutorExchange former = cluster.open("former");
    store.block();
    write(owner, 1, 1);
    assertThat(store.entered.await(1, TimeUnit.MINUTES)).isTrue();
    write(owner, 2, 1);
    write(former, 3, 2);
    for (int map = 0; map < 2; map++) {
      known.add(new BlockKey(3, map));
      migrate(former, owner, new BlockKey(3, map));
    }
    store.go.countDown();
    await().untilAsserted(() -> assertThat(copied).hasSize(2));
    assertThat(copied).containsExactly(new BlockKey(1, 0), new BlockKey(2, 0));
    assertThat(owner.statistics().get(COPIES_SKIPPED)).isZero();
  }

  private static void migrate(ExecutorExchange from, ExecutorExchange to, BlockKey key)
      throws IOException {
    try (InputStream bytes = from.outgoing(key).createInputStream();
        IncomingOutput incoming = to.incoming(key)) {
      incoming.append(ByteBuffer.wrap(bytes.readAllBytes()));
      incoming.finish();
    }
  }

  /** Reads cost most of the time at remote stores. */
  @Test
  void aSmallCopyIsReadAtOnceAndALargeOneInFewReads() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    TestBlocks.write(
        owner, new BlockKey(1, 0), PARTITIONS, (map, part, chunk) -> chunk < 3 ? 100 : 0);
    TestBlocks.write(
        owner, new BlockKey(1, 1), PARTITIONS, (map, part, chunk) -> chunk < 3 ? 60_000 : 0);
    await().untilAsserted(() -> assertThat(copied).hasSize(2));
    BlockKey small = new BlockKey(1, 0);
    assertThat(readAll(owner, List.of(request(source("owner"), small, 0, PARTITIONS, 1))))
        .isNotEmpty();
    assertThat(store.reads).as("reads of a small copy").isEqualTo(1);
    BlockKey large = new BlockKey(1, 1);
    assertThat(readAll(owner, List.of(request(source("owner"), large, 1, 2, 1)))).hasSize(3);
    assertThat(store.reads - 1).as("reads of three chunks of a large copy").isEqualTo(2);
  }

  /** Each reduce task reads a part of every copy. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theIndexOfACopyIsReadOnceUntilItsShuffleEnds(boolean encrypted) throws IOException {
    if (encrypted) {
      cluster.encrypted();
    }
    ExecutorExchange owner = cluster.open("owner");
    BlockKey key = new BlockKey(1, 0);
    TestBlocks.Sizes size = (map, part, chunk) -> chunk < 3 ? 60_000 : 0;
    TestBlocks.write(owner, key, PARTITIONS, size);
    await().untilAsserted(() -> assertThat(copied).hasSize(1));
    owner.close();
    ExecutorExchange reader = cluster.open("reader");
    for (int partition = PARTITIONS - 1; partition >= 0; partition--) {
      int before = store.reads;
      assertThat(
              readAll(reader, List.of(request(source("owner"), key, partition, partition + 1, 1))))
          .containsExactlyInAnyOrderElementsOf(expected(1, 0, 1, partition, partition + 1, size));
      assertThat(store.reads - before)
          .as("reads for partition " + partition)
          .isEqualTo(partition == PARTITIONS - 1 ? 2 : 1);
    }
    reader.removeShuffle(1);
    int before = store.reads;
    assertThat(readAll(reader, List.of(request(source("owner"), key, 1, 2, 1)))).hasSize(3);
    assertThat(store.reads - before).as("reads after the end of the shuffle").isEqualTo(2);
    TestCluster.assertNothingHeld(reader);
  }

  @Test
  void anOutputWithoutRowsNeedsNoFile() throws IOException {
    ExecutorExchange owner = cluster.open("owner");
    BlockKey key = new BlockKey(1, 0);
    TestBlocks.write(owner, key, PARTITIONS, (map, partition, chunk) -> 0);
    await().untilAsserted(() -> assertThat(copied).containsExactly(key));
    assertThat(store.files).isEmpty();
  }

  @Test
  void withoutAPlaceNothingIsCopied() throws IOException {
    cluster.copies(Optional.empty());
    ExecutorExchange owner = cluster.open("owner");
    write(owner, 1, 1);
    assertThat(owner.copyNow(new BlockKey(1, 0))).isFalse();
    assertThatThrownBy(() -> readAll(owner, requests(1, 0, 1)))
        .isInstanceOf(BlockFetchException.class);
  }

  private static void write(ExecutorExchange owner, int shuffle, int maps) throws IOException {
    for (int map = 0; map < maps; map++) {
      TestBlocks.write(owner, new BlockKey(shuffle, map), PARTITIONS, OutputCopierTest::size);
    }
  }

  /** Large and small chunks; partition 1 of every second map is empty. */
  private static long size(long map, int partition, int chunk) {
    if (chunk == 2 || (partition == 1 && map % 2 == 1)) {
      return 0;
    }
    return chunk == 0 ? 300_001 : 17 + map;
  }

  private static List<BlockRequest> requests(int maps, int start, int end) {
    return LongStream.range(0, maps)
        .mapToObj(map -> request(source("owner"), new BlockKey(1, map), start, end, 1000))
        .toList();
  }

  private static String source(String writer) {
    return Copies.source(COPIES, writer);
  }

  /** Keeps copies in memory. Like object stores, it shows a file when it is complete. */
  private static final class MemoryStore implements CopyStore {
    final Map<String, Map<BlockKey, byte[]>> ofWriters;
    final Map<BlockKey, byte[]> files;
    final CountDownLatch entered = new CountDownLatch(1);
    CountDownLatch go = new CountDownLatch(0);
    final List<BlockKey> made = new CopyOnWriteArrayList<>();
    volatile boolean fails;
    volatile boolean breaks;
    volatile Exception readFailure;
    volatile boolean interrupts;
    volatile int reads;

    MemoryStore(Map<String, Map<BlockKey, byte[]>> ofWriters, String writer) {
      this.ofWriters = ofWriters;
      this.files = ofWriters.computeIfAbsent(writer, any -> new ConcurrentHashMap<>());
    }

    /** Makes the next copies wait. */
    void block() {
      go = new CountDownLatch(1);
    }

    @Override
    public OutputStream create(BlockKey key) throws IOException {
      entered.countDown();
      if (breaks) {
        throw new NoClassDefFoundError("a/client");
      }
      made.add(key);
      try {
        go.await();
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
      return new ByteArrayOutputStream() {
        @Override
        public void close() throws IOException {
          if (fails) {
            throw new IOException("the place is full");
          }
          files.put(key, toByteArray());
        }
      };
    }

    @Override
    public CopyInput open(BlockKey key, String writer) throws IOException {
      byte[] bytes = ofWriters.getOrDefault(writer, Map.of()).get(key);
      if (bytes == null) {
        throw new NoSuchFileException(key.toString());
      }
      return new CopyInput() {
        @Override
        public int read(long position, byte[] into, int offset, int least, int most)
            throws IOException {
          reads++;
          if (interrupts) {
            Thread.currentThread().interrupt();
          }
          if (readFailure instanceof IOException e) {
            throw e;
          }
          if (readFailure instanceof RuntimeException e) {
            throw e;
          }
          if (position + least > bytes.length) {
            throw new EOFException("after " + bytes.length + " bytes");
          }
          int count = (int) Math.min(most, bytes.length - position);
          System.arraycopy(bytes, (int) position, into, offset, count);
          return count;
        }

        @Override
        public void close() {}
      };
    }

    @Override
    public void delete(BlockKey key) {
      files.remove(key);
    }

    @Override
    public void close() {}
  }
}
