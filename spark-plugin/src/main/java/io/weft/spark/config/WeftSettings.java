package io.weft.spark.config;

import static io.weft.spark.config.Setting.Scope.APPLICATION;
import static io.weft.spark.config.Setting.Scope.SESSION;

import io.weft.peer.PathRules;
import io.weft.peer.TransportMode;
import io.weft.tensor.codec.CodecKind;
import io.weft.wire.Compression;
import java.time.Duration;
import java.util.List;
import org.apache.spark.SparkConf;

/**
 * Every {@code spark.weft.*} setting, declared once.
 *
 * <p>Read one with {@code WeftSettings.FETCH_TIMEOUT.get(conf)}, from a {@code SparkConf} or, where
 * its scope is the session, from a {@code SQLConf}.
 */
public final class WeftSettings {
  /** What every key starts with. */
  public static final String PREFIX = "spark.weft.";

  /** Spark's setting for what lies in its local folders. */
  public static final String DISK_ENCRYPTION = "spark.io.encryption.enabled";

  private static final long KIB = 1L << 10;
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;
  private static final long TIB = 1L << 40;

  /** Whether the session's shuffles may go through Weft. */
  public static final Setting<Boolean> ENABLED =
      new Setting<>(
          PREFIX + "enabled",
          SettingTypes.bool(),
          true,
          SESSION,
          "Whether SQL shuffles go through Weft. When false, new queries of the session use Spark's"
              + " sort shuffle and no plan is changed.");

  /** Which route SQL shuffles take. */
  public static final Setting<Route> ROUTE =
      new Setting<>(
          PREFIX + "route",
          SettingTypes.choice(Route.class),
          Route.AUTO,
          SESSION,
          "Which way SQL shuffles take. rows copies packed rows and changes no plan; columns swaps"
              + " the exchange node wherever all column types can travel; auto takes columns where the"
              + " input comes in batches of columns, and rows elsewhere, also where Spark's row"
              + " checksums are on (spark.sql.shuffle.orderIndependentChecksum.*, the default of"
              + " Spark 4.2), which only the rows route keeps.");

  /** Which way blocks of other executors come. */
  public static final Setting<TransportMode> TRANSPORT =
      new Setting<>(
          PREFIX + "transport",
          SettingTypes.choice(TransportMode.class),
          TransportMode.AUTO,
          APPLICATION,
          "How blocks of other executors are read. auto reads in place what lies on the same host and"
              + " the rest by TCP; shm is auto, but fails where memory on the same host cannot be"
              + " mapped; tcp reads everything of other executors by TCP. With auto, arrays that tasks"
              + " exchange between GPUs go by NCCL where both executors can use it, else by"
              + " CUDA IPC on one host, else through memory of the hosts, and so do blocks of"
              + " shuffles that lie on GPUs; those on the host never go by NCCL. The Weft tab and the"
              + " logs say which way is taken and why.");

  /** Which NCCL is loaded. */
  public static final Setting<String> NCCL_LIBRARY =
      new Setting<>(
          PREFIX + "nccl.library",
          SettingTypes.absolutePath("empty (look for it)"),
          "",
          APPLICATION,
          "The libnccl.so.2 that executors with a GPU load. Empty takes the first in LD_LIBRARY_PATH,"
              + " the usual folders and Python's packages.");

  /** Whether NCCL may go between hosts where Spark encrypts its network. */
  public static final Setting<Boolean> NCCL_ALLOW_UNENCRYPTED =
      new Setting<>(
          PathRules.ALLOW_KEY,
          SettingTypes.bool(),
          false,
          APPLICATION,
          "NCCL does not encrypt. Where Spark encrypts its network (spark.network.crypto.enabled,"
              + " spark.authenticate.enableSaslEncryption or spark.ssl.rpc.enabled) it is therefore"
              + " not used between hosts, unless this is true. What the two ends agree on over sockets"
              + " (keys, sizes, failures) is not encrypted then either.");

  /** Where the executor's block server listens. */
  public static final Setting<Integer> PORT =
      new Setting<>(
          PREFIX + "port",
          SettingTypes.integer(0, 65535),
          0,
          APPLICATION,
          "Port on which each executor serves blocks to executors of other hosts. 0 takes any free"
              + " one; otherwise the next ports are tried too, as for spark.blockManager.port.");

  /** Budget of shared memory for each executor. */
  public static final Setting<Long> MEMORY_SIZE =
      new Setting<>(
          PREFIX + "memory.size",
          SettingTypes.bytesOrZero("choose", MIB, 64 * TIB),
          0L,
          APPLICATION,
          "Shared memory each executor may use for shuffle data. 0 takes a quarter of the shared"
              + " memory file system, at most 4g. What does not fit goes to Spark's local folders.");

  /** Size of a segment of the arena. */
  public static final Setting<Long> MEMORY_SEGMENT_SIZE =
      new Setting<>(
          PREFIX + "memory.segmentSize",
          SettingTypes.bytes(MIB, GIB),
          64 * MIB,
          APPLICATION,
          "Memory is reserved in segments of this size and reused until the executor ends. A row"
              + " larger than a segment gets a segment of its own.");

  /** Where segments live. */
  public static final Setting<String> MEMORY_FOLDER =
      new Setting<>(
          PREFIX + "memory.folder",
          SettingTypes.absolutePath("empty (choose)"),
          "",
          APPLICATION,
          "Folder of a memory file system for the segments. Empty takes /dev/shm, or the first of"
              + " Spark's local folders where /dev/shm is absent, read-only or too small.");

  /** What is left free of the shared memory file system. */
  public static final Setting<Long> MEMORY_MARGIN =
      new Setting<>(
          PREFIX + "memory.margin",
          SettingTypes.bytes(0, TIB),
          32 * MIB,
          APPLICATION,
          "Bytes that Weft leaves free for others on every file system it puts memory on: shared"
              + " memory, and the local folders when it spills.");

  /** Budget on disk for each executor. */
  public static final Setting<Long> SPILL_SIZE =
      new Setting<>(
          PREFIX + "spill.size",
          SettingTypes.bytes(0, 1024 * TIB),
          TIB,
          APPLICATION,
          "Bytes of Spark's local folders each executor may use for shuffle data that does not fit"
              + " into its shared memory. 0 forbids it: a task that finds no memory then fails.");

  /** Memory that chunks are encrypted from and decrypted into. */
  public static final Setting<Long> SPILL_PRIVATE_MEMORY =
      new Setting<>(
          PREFIX + "spill.privateMemory",
          SettingTypes.bytes(2 * MIB, TIB),
          GIB,
          APPLICATION,
          "With spark.io.encryption.enabled: memory of its own that each executor may use, while"
              + " shared memory is full, instead of Spark's local folders, where everything is"
              + " encrypted. Half of it, in whole segments, is for what stays: GPU memory that was"
              + " spilled, arrays that were received, batches of feeds. The rest is for map tasks and"
              + " readers, which have it for moments and wait for each other, at most"
              + " spark.weft.fetch.timeout. It is taken when it is needed and given back after a"
              + " minute. Without encryption none is. Segments, also those in shared memory, are no"
              + " longer than half of this, and chunks no longer than a sixteenth of a segment, so a"
              + " size below twice spark.weft.memory.segmentSize makes both shorter. An application"
              + " whose executors run more tasks at once than there are chunks in the part for tasks"
              + " does not start.");

  /** How long a fetch may make no progress. */
  public static final Setting<Duration> FETCH_TIMEOUT =
      new Setting<>(
          PREFIX + "fetch.timeout",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofDays(1)),
          Duration.ofMinutes(2),
          APPLICATION,
          "A request to another executor that makes no progress for this long fails, and Spark runs"
              + " the map task again. Requests of all tasks to one executor share a connection and"
              + " come in order, so what was asked for before, or less than this time after it,"
              + " counts as its progress. Also how long a reader keeps asking the driver for an"
              + " executor's address, and how long a task waits for private memory"
              + " (spark.weft.spill.privateMemory). A number without a unit is seconds.");

  /** How much is asked of one peer at a time. */
  public static final Setting<Long> FETCH_REQUEST_SIZE =
      new Setting<>(
          PREFIX + "fetch.requestSize",
          SettingTypes.bytes(KIB, GIB),
          8 * MIB,
          APPLICATION,
          "Bytes asked of another executor in one request over TCP, many blocks together.");

  /** How much a reader holds in flight. */
  public static final Setting<Long> FETCH_MAX_BYTES_IN_FLIGHT =
      new Setting<>(
          PREFIX + "fetch.maxBytesInFlight",
          SettingTypes.bytes(KIB, 16 * GIB),
          48 * MIB,
          APPLICATION,
          "Bytes one reader has at most asked for over TCP and not yet used.");

  /** How much a reader holds in flight of one peer. */
  public static final Setting<Long> FETCH_MAX_BYTES_IN_FLIGHT_PER_PEER =
      new Setting<>(
          PREFIX + "fetch.maxBytesInFlightPerPeer",
          SettingTypes.bytes(KIB, 16 * GIB),
          48 * MIB,
          APPLICATION,
          "Of these, bytes asked of one executor.");

  /** How much all readers of an executor hold in flight. */
  public static final Setting<Long> FETCH_MAX_BYTES_IN_FLIGHT_PER_EXECUTOR =
      new Setting<>(
          PREFIX + "fetch.maxBytesInFlightPerExecutor",
          SettingTypes.bytes(KIB, TIB),
          GIB,
          APPLICATION,
          "Bytes all readers of an executor together have at most asked for over TCP and not yet"
              + " used. A reader with nothing under way still sends one request.");

  /** How much an executor holds for peers. */
  public static final Setting<Long> SERVE_MAX_BYTES_IN_FLIGHT =
      new Setting<>(
          PREFIX + "serve.maxBytesInFlight",
          SettingTypes.bytes(KIB, TIB),
          GIB,
          APPLICATION,
          "Bytes an executor has at most opened for others over TCP and not sent yet. Who asks for"
              + " more is told to ask again in a moment.");

  /** How much an executor holds for one peer. */
  public static final Setting<Long> SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER =
      new Setting<>(
          PREFIX + "serve.maxBytesInFlightPerPeer",
          SettingTypes.bytes(KIB, TIB),
          256 * MIB,
          APPLICATION,
          "Of these, bytes for one executor, or for each of its connections where"
              + " spark.shuffle.io.numConnectionsPerPeer is more than 1. One that does not take what"
              + " it asked for cannot keep it from the others.");

  /** Whether blocks are verified. */
  public static final Setting<Boolean> CHECKSUMS =
      new Setting<>(
          PREFIX + "checksums",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether every block that comes by TCP, or lay on disk, is held against a CRC32C made"
              + " where it was written. A wrong one is fetched once more, then Spark computes it"
              + " again. Blocks in shared memory are not checked.");

  /** How blocks are packed. */
  public static final Setting<Compression> COMPRESSION =
      new Setting<>(
          PREFIX + "compression",
          SettingTypes.choice(Compression.class),
          Compression.NONE,
          APPLICATION,
          "How blocks are packed on their way over TCP: none, lz4 or zstd. Blocks that do not shrink"
              + " to nine tenths are sent as they are. Pays on networks of about 1 Gbit/s and less.");

  /** Rows of a batch. */
  public static final Setting<Integer> BATCH_ROWS =
      new Setting<>(
          PREFIX + "batch.rows",
          SettingTypes.integer(1, 1 << 20),
          8192,
          APPLICATION,
          "Rows a batch of the columns route is filled to.");

  /** Bytes of a batch. */
  public static final Setting<Long> BATCH_SIZE =
      new Setting<>(
          PREFIX + "batch.size",
          SettingTypes.bytes(KIB, GIB),
          4 * MIB,
          APPLICATION,
          "Memory in which a map task of the columns route collects rows, over all partitions, before it"
              + " writes the fullest to the arena. It is native memory of every running task, beside"
              + " the arena. More of it makes larger batches where there are many partitions, up to"
              + " 512k each.");

  /** How long collectives of barrier tasks may take. */
  public static final Setting<Duration> COLLECTIVES_TIMEOUT =
      new Setting<>(
          PREFIX + "collectives.timeout",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofDays(1)),
          Duration.ofMinutes(2),
          APPLICATION,
          "How long the tasks of a barrier stage wait for each other, when their communicator is"
              + " created and in every operation on it, before all fail with the names of those who"
              + " are late. A number without a unit is seconds.");

  /** Bytes of a batch of transfers. */
  public static final Setting<Long> TRANSFERS_BATCH_SIZE =
      new Setting<>(
          PREFIX + "transfers.batchSize",
          SettingTypes.bytes(1, GIB),
          4 * MIB,
          APPLICATION,
          "Bytes at which a batch of deferred transfers between executors leaves.");

  /** Age of a batch of transfers. */
  public static final Setting<Duration> TRANSFERS_BATCH_AGE =
      new Setting<>(
          PREFIX + "transfers.batchAge",
          SettingTypes.duration(Duration.ofMillis(1), Duration.ofMinutes(1)),
          Duration.ofMillis(5),
          APPLICATION,
          "Age at which a batch of deferred transfers leaves even with fewer bytes. A batch that"
              + " somebody waits for leaves at once.");

  /** How long a transfer may take. */
  public static final Setting<Duration> TRANSFERS_DEADLINE =
      new Setting<>(
          PREFIX + "transfers.deadline",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofDays(1)),
          Duration.ofMinutes(2),
          APPLICATION,
          "How long a transfer between executors may take, from when it leaves, before it fails with"
              + " the names of both ends. A number without a unit is seconds.");

  /** When a communicator of transfers is given up. */
  public static final Setting<Duration> TRANSFERS_IDLE =
      new Setting<>(
          PREFIX + "transfers.idle",
          SettingTypes.duration(Duration.ofSeconds(1), Duration.ofDays(1)),
          Duration.ofMinutes(5),
          APPLICATION,
          "Two executors give up the communicator between them when both had nothing to transfer"
              + " for so long; the next transfer makes a new one. A number without a unit is"
              + " seconds.");

  /** Memory of a GPU for arrays that arrive. */
  public static final Setting<Long> TRANSFERS_GPU_MEMORY =
      new Setting<>(
          PREFIX + "transfers.gpuMemory",
          SettingTypes.bytes(MIB, TIB),
          GIB,
          APPLICATION,
          "Memory of its GPU that each executor may use for arrays it receives there. It is taken as"
              + " transfers need it and kept until the executor ends.");

  /** Whether NCCL gets arrays before the GPU has written them. */
  public static final Setting<Boolean> TRANSFERS_FOLLOW_DEVICES =
      new Setting<>(
          PREFIX + "transfers.followDevices",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether the GPU waits for work that writes an array it sends by NCCL, or the host: false"
              + " where that work may hang, or needs what the same two GPUs exchange later.");

  /** Memory of a GPU for feeds. */
  public static final Setting<Long> GPU_MEMORY =
      new Setting<>(
          PREFIX + "gpu.memory",
          SettingTypes.bytes(MIB, TIB),
          4 * GIB,
          APPLICATION,
          "Memory of its GPU that each executor may use for batches of feeds, and for what feeds"
              + " export there. It is taken as tasks need it and kept until the executor ends. A rank"
              + " needs room for two batches at least, an export for all of its batches.");

  /** Memory of a GPU for rows that go from GPU to GPU. */
  public static final Setting<Long> GPU_EXCHANGE_MEMORY =
      new Setting<>(
          PREFIX + "gpu.exchangeMemory",
          SettingTypes.bytes(MIB, TIB),
          4 * GIB,
          APPLICATION,
          "Memory of its GPU that each executor may use for batches of queries that lie there, to"
              + " partition rows of queries and feeds that go from GPU to GPU, and to keep them until"
              + " they are read. What does not fit goes to pinned memory of the host, then to"
              + " spark.weft.memory.size and the local folders, and comes back when it is read.");

  /** Pinned memory for what does not fit on a GPU. */
  public static final Setting<Long> GPU_PINNED_MEMORY =
      new Setting<>(
          PREFIX + "gpu.pinnedMemory",
          SettingTypes.bytes(4 * MIB, TIB),
          256 * MIB,
          APPLICATION,
          "Pinned memory of the host that each executor may use for what does not fit into"
              + " spark.weft.gpu.exchangeMemory. It is taken when that is full.");

  /** How tensors are encoded in shuffles of RDDs. */
  public static final Setting<CodecKind> TENSORS_CODEC =
      new Setting<>(
          PREFIX + "tensors.codec",
          SettingTypes.choice(CodecKind.class),
          CodecKind.NONE,
          APPLICATION,
          "How the elements of tensors travel in shuffles of RDDs. zstd packs all types without loss."
              + " bfloat16, float8_e4m3 and float8_e5m2 round float32 elements to 2 bytes or 1, the"
              + " 8-bit ones scaled by the largest element of each tensor, and leave other types as"
              + " they are: what comes out of the shuffle is no longer what went in.");

  /** The step at which ranks of a feed write down what they see. */
  public static final Setting<Integer> DEBUG_DUMP_STEP =
      new Setting<>(
          PREFIX + "debug.dumpStep",
          SettingTypes.integer(-1, Integer.MAX_VALUE),
          -1,
          SESSION,
          "The batch, counted from 0 through the feed's epochs, at which every rank writes the"
              + " exchange's plan, what was transferred and statistics of its batch's tensors to a"
              + " file. A rank that ends before that step says so in its log and its file. -1: never.");

  /** Where it is written down. */
  public static final Setting<String> DEBUG_DUMP_FOLDER =
      new Setting<>(
          PREFIX + "debug.dumpFolder",
          SettingTypes.absolutePath("empty (choose)"),
          "",
          SESSION,
          "Folder on the executors' hosts for these files, APPLICATION-feed-7-rank-0.json and so"
              + " on for the feed with number 7; made if it is not there. Empty takes weft-dump in"
              + " the executor's working folder.");

  /** Whether the Spark UI gets a Weft tab. */
  public static final Setting<Boolean> UI_ENABLED =
      new Setting<>(
          PREFIX + "ui.enabled",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether the Spark UI gets a Weft tab, and executors report to the driver for it.");

  private static final List<Setting<?>> ALL =
      List.of(
          ENABLED,
          ROUTE,
          TRANSPORT,
          NCCL_LIBRARY,
          NCCL_ALLOW_UNENCRYPTED,
          PORT,
          MEMORY_SIZE,
          MEMORY_SEGMENT_SIZE,
          MEMORY_FOLDER,
          MEMORY_MARGIN,
          SPILL_SIZE,
          SPILL_PRIVATE_MEMORY,
          FETCH_TIMEOUT,
          FETCH_REQUEST_SIZE,
          FETCH_MAX_BYTES_IN_FLIGHT,
          FETCH_MAX_BYTES_IN_FLIGHT_PER_PEER,
          FETCH_MAX_BYTES_IN_FLIGHT_PER_EXECUTOR,
          SERVE_MAX_BYTES_IN_FLIGHT,
          SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER,
          CHECKSUMS,
          COMPRESSION,
          BATCH_ROWS,
          BATCH_SIZE,
          COLLECTIVES_TIMEOUT,
          TRANSFERS_BATCH_SIZE,
          TRANSFERS_BATCH_AGE,
          TRANSFERS_DEADLINE,
          TRANSFERS_IDLE,
          TRANSFERS_GPU_MEMORY,
          TRANSFERS_FOLLOW_DEVICES,
          GPU_MEMORY,
          GPU_EXCHANGE_MEMORY,
          GPU_PINNED_MEMORY,
          TENSORS_CODEC,
          DEBUG_DUMP_STEP,
          DEBUG_DUMP_FOLDER,
          UI_ENABLED);

  private WeftSettings() {}

  /**
   * Size of the segments that are really made: none is larger than the memory there is, or than
   * half of private memory where that is used.
   */
  public static long segmentBytes(SparkConf conf) {
    long memory = MEMORY_SIZE.get(conf);
    long segment = MEMORY_SEGMENT_SIZE.get(conf);
    long most = isDiskEncrypted(conf) ? SPILL_PRIVATE_MEMORY.get(conf) / 128 * 64 : segment;
    return Math.min(memory > 0 ? Math.min(segment, memory) : segment, most);
  }

  /** Whether Spark encrypts what it writes to its local folders, so Weft does as well. */
  public static boolean isDiskEncrypted(SparkConf conf) {
    return conf.getBoolean(DISK_ENCRYPTION, false);
  }

  /** All settings, in the order of the documentation. */
  public static List<Setting<?>> all() {
    return ALL;
  }
}
