package io.weft.examples.trace;

import io.weft.examples.trace.TracePattern.Block;
import io.weft.examples.trace.TracePattern.BlockRead;
import io.weft.examples.trace.TracePattern.Output;
import io.weft.examples.trace.TracePattern.Reader;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.shuffle.ExchangeOptions;
import io.weft.shuffle.ExchangeOptions.MemoryOptions;
import io.weft.shuffle.ExchangeOptions.NetworkOptions;
import io.weft.shuffle.ExchangeOptions.TrafficOptions;
import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.shuffle.peer.PeerAddress;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.MapOutputWriter;
import io.weft.spark.config.MemorySettings;
import io.weft.spark.config.Setting;
import io.weft.spark.config.SettingsCheck;
import io.weft.spark.config.WeftSettings;
import io.weft.transfers.TransferOptions;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.SecurityManager;
import org.apache.spark.SparkConf;
import scala.Option;
import scala.Tuple2;

/**
 * The executors of a replay: one exchange each, all in this process. Owns them. Thread-safe after
 * it is opened.
 */
final class ReplayExecutors implements AutoCloseable {
  private static final String LOOPBACK = "127.0.0.1";
  private static final int PAGE_BYTES = 4096;

  /** Each has a block server and threads of its own. */
  private static final int MAX_EXECUTORS = 64;

  /** Bytes that do not compress. */
  private static final byte[] CONTENT = new byte[1 << 16];

  static {
    new Random(17).nextBytes(CONTENT);
  }

  /** The settings that change a replay. */
  private static final Set<String> SETTINGS =
      Stream.of(
              MemorySettings.FOLDER,
              MemorySettings.SIZE,
              MemorySettings.SEGMENT_SIZE,
              MemorySettings.SPILL_SIZE,
              MemorySettings.MARGIN,
              MemorySettings.IDLE_TIME,
              WeftSettings.TRANSPORT,
              WeftSettings.FETCH_TIMEOUT,
              WeftSettings.FETCH_REQUEST_SIZE,
              WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT,
              WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT_PER_PEER,
              WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT_PER_EXECUTOR,
              WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT,
              WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER,
              WeftSettings.CHECKSUMS,
              WeftSettings.COMPRESSION,
              WeftSettings.TRANSFERS_BATCH_SIZE,
              WeftSettings.TRANSFERS_BATCH_AGE,
              WeftSettings.TRANSFERS_DEADLINE,
              WeftSettings.TRANSFERS_IDLE)
          .map(Setting::key)
          .collect(Collectors.toUnmodifiableSet());

  private final Map<String, ExecutorExchange> exchanges = new LinkedHashMap<>();
  private final Map<String, PeerAddress> addresses = new HashMap<>();
  private final Map<String, String> hosts;
  private final long maxChunkBytes;
  private final double scale;

  private ReplayExecutors(Map<String, String> hosts, long maxChunkBytes, double scale) {
    this.hosts = hosts;
    this.maxChunkBytes = maxChunkBytes;
    this.scale = scale;
  }

  /**
   * Opens the exchanges.
   *
   * @param hosts by executor id
   * @param conf their settings
   * @param memory folder of shared memory, unless the settings name one
   * @param work folder of local files
   * @param scale factor of all sizes
   */
  static ReplayExecutors open(
      Map<String, String> hosts, SparkConf conf, Path memory, Path work, double scale)
      throws IOException {
    if (hosts.size() > MAX_EXECUTORS) {
      throw new IOException(
          "a replay runs all executors in one process, at most %d; the trace has %d"
              .formatted(MAX_EXECUTORS, hosts.size()));
    }
    ReplayExecutors executors =
        new ReplayExecutors(hosts, MemorySettings.segmentBytes(conf), scale);
    try {
      for (String id : hosts.keySet()) {
        Path local = Files.createDirectories(work.resolve("local-" + executors.exchanges.size()));
        ExecutorExchange exchange =
            ExecutorExchange.open(
                options(id, conf, memory, local), ids -> executors.peers(id, ids));
        executors.exchanges.put(id, exchange);
        executors.addresses.put(id, exchange.address());
      }
      return executors;
    } catch (IOException | RuntimeException e) {
      executors.close();
      throw e;
    }
  }

  /**
   * Checks settings of a replay.
   *
   * @throws IllegalArgumentException if one of Weft is unknown, has a wrong value or no effect
   */
  static void check(SparkConf conf) {
    SettingsCheck.check(conf);
    for (Tuple2<String, String> setting : conf.getAll()) {
      if (setting._1().startsWith(WeftSettings.PREFIX) && !SETTINGS.contains(setting._1())) {
        throw new IllegalArgumentException(
            setting._1() + " has no effect on a replay; these have: " + new TreeSet<>(SETTINGS));
      }
    }
  }

  private static ExchangeOptions options(String id, SparkConf conf, Path memory, Path local) {
    String folder = MemorySettings.FOLDER.get(conf);
    long inFlight = WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT.get(conf);
    return new ExchangeOptions(
        "weft-replay",
        id,
        "replay",
        new MemoryOptions(
            Optional.of(folder.isEmpty() ? memory : Path.of(folder)),
            List.of(local),
            MemorySettings.segmentBytes(conf),
            MemorySettings.SIZE.get(conf),
            MemorySettings.SPILL_SIZE.get(conf),
            MemorySettings.MARGIN.get(conf),
            Optional.empty(),
            MemorySettings.IDLE_TIME.get(conf)),
        new NetworkOptions(
            LOOPBACK,
            LOOPBACK,
            0,
            0,
            WeftSettings.TRANSPORT.get(conf),
            Math.min(WeftSettings.FETCH_REQUEST_SIZE.get(conf), inFlight),
            inFlight,
            WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT_PER_EXECUTOR.get(conf),
            WeftSettings.FETCH_TIMEOUT.get(conf),
            conf,
            new SecurityManager(conf, Option.empty(), null)),
        new TrafficOptions(
            WeftSettings.CHECKSUMS.get(conf),
            WeftSettings.COMPRESSION.get(conf),
            WeftSettings.FETCH_MAX_BYTES_IN_FLIGHT_PER_PEER.get(conf),
            WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT.get(conf),
            WeftSettings.SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER.get(conf)));
  }

  /** An executor on another host of the trace shows no folder here, so it is reached by TCP. */
  private Map<String, PeerAddress> peers(String self, Set<String> ids) {
    Map<String, PeerAddress> found = new HashMap<>();
    for (String id : ids) {
      PeerAddress address = addresses.get(id);
      if (address != null) {
        boolean sameHost = hosts.get(self).equals(hosts.get(id));
        found.put(id, sameHost ? address : address.withoutFolder());
      }
    }
    return found;
  }

  /** Opens transfers between these executors, which use their memory. */
  ReplayTransfers transfers(TransferPattern pattern, SparkConf conf, Path memory, Path work)
      throws IOException {
    TransferOptions options =
        new TransferOptions(
            WeftSettings.TRANSFERS_BATCH_SIZE.get(conf),
            WeftSettings.TRANSFERS_BATCH_AGE.get(conf),
            WeftSettings.TRANSFERS_DEADLINE.get(conf),
            WeftSettings.TRANSFERS_IDLE.get(conf));
    return new ReplayTransfers(
        pattern,
        hosts,
        executor -> exchanges.get(executor).arena(),
        options,
        memory,
        work,
        this::scaled);
  }

  private long scaled(long bytes) {
    return bytes == 0 ? 0 : Math.max(1, Math.round(bytes * scale));
  }

  /** Writes a map output. Its blocks are partitions, and the rest is one more. */
  void write(Output output) throws IOException {
    ExecutorExchange exchange = exchanges.get(output.executor());
    BlockKey key = new BlockKey(output.shuffle(), output.mapId());
    int blocks = output.blocks().size();
    try (MapOutputWriter writer = exchange.newMapOutput(key, blocks + 1)) {
      for (Block block : output.blocks()) {
        fill(exchange, writer, block.number(), scaled(block.bytes()), block.chunks());
      }
      fill(exchange, writer, blocks, scaled(output.unread()), output.unreadChunks());
      writer.publish();
    }
  }

  /** Writes at least this number of chunks, if the bytes suffice, each at most a segment. */
  private void fill(
      ExecutorExchange exchange, MapOutputWriter writer, int partition, long bytes, int chunks)
      throws IOException {
    long left = bytes;
    long each = Math.min(maxChunkBytes, Math.max(1, (bytes + chunks - 1) / chunks));
    while (left > 0) {
      long length = Math.min(left, each);
      Extent chunk = writer.allocate(length);
      ByteBuffer view = exchange.arena().view(chunk);
      for (long rest = length; rest > 0; rest -= CONTENT.length) {
        view.put(CONTENT, 0, (int) Math.min(rest, CONTENT.length));
      }
      writer.commit(partition, chunk, length, 1);
      left -= length;
    }
  }

  /** Reads all blocks of a reader and touches their pages. */
  void read(Reader reader) throws IOException {
    List<BlockRequest> requests = new ArrayList<>();
    long expected = 0;
    for (BlockRead read : reader.reads()) {
      Output output = read.output();
      int partition = read.block().number();
      long bytes = scaled(read.block().bytes());
      expected += bytes;
      requests.add(
          new BlockRequest(
              output.executor(),
              new BlockKey(output.shuffle(), output.mapId()),
              0,
              partition,
              partition + 1,
              bytes));
    }
    long got = 0;
    long sum = 0;
    try (ChunkReader chunks = exchanges.get(reader.executor()).read(requests, FetchListener.NONE)) {
      while (chunks.next()) {
        for (long at = 0; at + Long.BYTES <= chunks.length(); at += PAGE_BYTES) {
          sum += Memory.getLong(chunks.address() + at);
        }
        got += chunks.length();
      }
    }
    if (got != expected) {
      throw new IOException(
          "a reader got %d bytes instead of %d (check %d)".formatted(got, expected, sum));
    }
  }

  /** Frees the outputs of a shuffle. */
  void remove(int shuffle) {
    exchanges.values().forEach(exchange -> exchange.removeShuffle(shuffle));
  }

  @Override
  public void close() {
    exchanges.values().forEach(ExecutorExchange::close);
  }
}
