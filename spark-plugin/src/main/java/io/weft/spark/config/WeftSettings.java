package io.weft.spark.config;

import static io.weft.spark.config.Setting.Scope.APPLICATION;
import static io.weft.spark.config.Setting.Scope.SESSION;

import io.weft.shuffle.net.Compression;
import io.weft.shuffle.peer.TransportMode;
import io.weft.spark.config.Setting.SettingTypes;
import io.weft.tensor.codec.CodecKind;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.SparkConf;

/**
 * Every {@code spark.weft.*} setting, declared once.
 *
 * <p>Read one with {@code WeftSettings.FETCH_TIMEOUT.get(conf)}. The argument is a {@code
 * SparkConf} or, for settings of the session, a {@code SQLConf}.
 */
public final class WeftSettings {
  /** What every key starts with. */
  public static final String PREFIX = "spark.weft.";

  /** Spark's setting that encrypts its local folders. */
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
          "Whether shuffles go through Weft. When false, new queries and RDD jobs of the"
              + " session use Spark's sort shuffle.");

  /** The route of SQL shuffles. */
  public static final Setting<Route> ROUTE =
      new Setting<>(
          PREFIX + "route",
          SettingTypes.choice(Route.class),
          Route.AUTO,
          SESSION,
          "The route of SQL shuffles. rows copies packed rows. columns replaces the"
              + " exchange node wherever Weft supports all column types. auto takes columns where"
              + " the input arrives in batches of columns, else rows. It also takes rows for a"
              + " repartition without keys that sorts first"
              + " (spark.sql.execution.sortBeforeRepartition), and, on one host without row"
              + " checksums, for hashed scans of numbers (no decimals) and times whose rows have at most"
              + " 1.3 times the bytes.");

  /** The sizes of blocks that Spark is told. */
  public static final Setting<ReportedSizes> REPORTED_SIZES =
      new Setting<>(
          PREFIX + "reportedSizes",
          SettingTypes.choice(ReportedSizes.class),
          ReportedSizes.SPARK,
          APPLICATION,
          "The block sizes of SQL shuffles that Spark is told. spark: estimates of Spark's"
              + " own compressed blocks, so that adaptive execution decides as without Weft. real:"
              + " the bytes of Weft's blocks, which are larger.");

  /** Whether Weft carries RDD shuffles of any serializer. */
  public static final Setting<Boolean> RDD_STREAMS =
      new Setting<>(
          PREFIX + "rdd.streams",
          SettingTypes.bool(),
          false,
          APPLICATION,
          "Whether RDD shuffles of any serializer go through Weft, also if they aggregate"
              + " or sort. Their records are not compressed.");

  /** The number of failures after which Weft takes no more shuffles. */
  public static final Setting<Integer> FALLBACK_FAILURES =
      new Setting<>(
          PREFIX + "fallback.failures",
          SettingTypes.integer(0, Integer.MAX_VALUE),
          3,
          APPLICATION,
          "Number of failed writes and fetches after which new shuffles use Spark's sort shuffle."
              + " Failures of executors that end do not count. 0: never.");

  /** How blocks of other executors are read. */
  public static final Setting<TransportMode> TRANSPORT =
      new Setting<>(
          PREFIX + "transport",
          SettingTypes.choice(TransportMode.class),
          TransportMode.AUTO,
          APPLICATION,
          "How an executor reads blocks of others. auto: in place on the same host, else by"
              + " TCP. shm: as auto, but fails if memory on the same host cannot be mapped. tcp:"
              + " always by TCP. Only with auto, data in GPU memory uses NCCL or CUDA IPC.");

  /** The NCCL library to load. */
  public static final Setting<String> NCCL_LIBRARY =
      new Setting<>(
          PREFIX + "nccl.library",
          SettingTypes.absolutePath("empty (search)"),
          "",
          APPLICATION,
          "The libnccl.so.2 to load. Empty takes the first in LD_LIBRARY_PATH, the usual"
              + " folders and Python's packages.");

  /** Whether NCCL may transfer unencrypted data between hosts where Spark encrypts its network. */
  public static final Setting<Boolean> NCCL_ALLOW_UNENCRYPTED =
      new Setting<>(
          PREFIX + "nccl.allowUnencrypted",
          SettingTypes.bool(),
          false,
          APPLICATION,
          "Whether NCCL, which does not encrypt, may transfer data between hosts although"
              + " Spark encrypts its network (spark.network.crypto.enabled,"
              + " spark.authenticate.enableSaslEncryption or spark.ssl.rpc.enabled). Control"
              + " messages (keys, sizes, failures) are not encrypted then either.");

  /** The port of the executor's block server. */
  public static final Setting<Integer> PORT =
      new Setting<>(
          PREFIX + "port",
          SettingTypes.integer(0, 65535),
          0,
          APPLICATION,
          "Port on which each executor serves blocks to other hosts. 0 takes any free port."
              + " A port in use is skipped, as for spark.blockManager.port.");

  /** The timeout of a fetch without progress. */
  public static final Setting<Duration> FETCH_TIMEOUT =
      new Setting<>(
          PREFIX + "fetch.timeout",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofDays(1)),
          Duration.ofMinutes(2),
          APPLICATION,
          "Timeout of a request to another executor without progress; then Spark runs the"
              + " map task again. The timeout also limits how long a task waits for private"
              + " memory.");

  /** Bytes of one fetch request. */
  public static final Setting<Long> FETCH_REQUEST_SIZE =
      new Setting<>(
          PREFIX + "fetch.requestSize",
          SettingTypes.bytes(KIB, GIB),
          8 * MIB,
          APPLICATION,
          "Bytes of one request over TCP.");

  /** Maximum bytes in flight of a reader. */
  public static final Setting<Long> FETCH_MAX_BYTES_IN_FLIGHT =
      new Setting<>(
          PREFIX + "fetch.maxBytesInFlight",
          SettingTypes.bytes(KIB, 16 * GIB),
          48 * MIB,
          APPLICATION,
          "Maximum bytes that one reader has requested over TCP and not yet used.");

  /** Maximum bytes in flight of a reader from one peer. */
  public static final Setting<Long> FETCH_MAX_BYTES_IN_FLIGHT_PER_PEER =
      new Setting<>(
          PREFIX + "fetch.maxBytesInFlightPerPeer",
          SettingTypes.bytes(KIB, 16 * GIB),
          48 * MIB,
          APPLICATION,
          "Maximum bytes in flight of one reader from one executor.");

  /** Maximum bytes in flight of all readers of an executor. */
  public static final Setting<Long> FETCH_MAX_BYTES_IN_FLIGHT_PER_EXECUTOR =
      new Setting<>(
          PREFIX + "fetch.maxBytesInFlightPerExecutor",
          SettingTypes.bytes(KIB, TIB),
          GIB,
          APPLICATION,
          "Maximum bytes in flight of all readers of an executor. A reader with nothing in"
              + " flight still sends one request.");

  /** Maximum bytes that an executor has opened for peers. */
  public static final Setting<Long> SERVE_MAX_BYTES_IN_FLIGHT =
      new Setting<>(
          PREFIX + "serve.maxBytesInFlight",
          SettingTypes.bytes(KIB, TIB),
          GIB,
          APPLICATION,
          "Maximum bytes that an executor has opened for others over TCP and not yet sent."
              + " Further requests are refused and retried.");

  /** Maximum bytes that an executor has opened for one peer. */
  public static final Setting<Long> SERVE_MAX_BYTES_IN_FLIGHT_PER_PEER =
      new Setting<>(
          PREFIX + "serve.maxBytesInFlightPerPeer",
          SettingTypes.bytes(KIB, TIB),
          256 * MIB,
          APPLICATION,
          "Maximum opened bytes for one executor, or for each of its connections"
              + " (spark.shuffle.io.numConnectionsPerPeer).");

  /** Whether blocks are verified. */
  public static final Setting<Boolean> CHECKSUMS =
      new Setting<>(
          PREFIX + "checksums",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether readers verify blocks from TCP or disk by a CRC32C. A damaged block is"
              + " fetched once more, then computed again. Blocks in shared memory are not"
              + " checked.");

  /** How blocks are compressed. */
  public static final Setting<Compression.Rule> COMPRESSION =
      new Setting<>(
          PREFIX + "compression",
          SettingTypes.choice(Compression.Rule.class),
          Compression.Rule.AUTO,
          APPLICATION,
          "Compression of blocks for TCP. auto: the fastest by the measured rates of network"
              + " and codecs. It pays at about 1 Gbit/s and less.");

  /** Rows of a batch. */
  public static final Setting<Integer> BATCH_ROWS =
      new Setting<>(
          PREFIX + "batch.rows",
          SettingTypes.integer(1, 1 << 20),
          8192,
          APPLICATION,
          "Target number of rows of a batch of the columns route.");

  /** Memory of a map task's batches. */
  public static final Setting<Long> BATCH_SIZE =
      new Setting<>(
          PREFIX + "batch.size",
          SettingTypes.bytes(KIB, GIB),
          4 * MIB,
          APPLICATION,
          "Native memory of each map task of the columns route, in addition to the arena,"
              + " in which it collects rows of all partitions. More makes larger batches, up to"
              + " 512k each.");

  /** The timeout of collectives of barrier tasks. */
  public static final Setting<Duration> COLLECTIVES_TIMEOUT =
      new Setting<>(
          PREFIX + "collectives.timeout",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofDays(1)),
          Duration.ofMinutes(2),
          APPLICATION,
          "Timeout of barrier tasks that create their communicator, and of each operation"
              + " on it. All tasks then fail with the names of the late ones.");

  /** GPU memory for buffers of communicators on GPUs. */
  public static final Setting<Long> COLLECTIVES_GPU_MEMORY =
      new Setting<>(
          PREFIX + "collectives.gpuMemory",
          SettingTypes.bytes(2 * MIB, TIB),
          GIB,
          APPLICATION,
          "GPU memory of each executor for buffers of communicators on GPUs, allocated when needed"
              + " and kept for later barrier stages, unused at most for spark.weft.memory.idleTime.");

  /** Bytes of a batch of transfers. */
  public static final Setting<Long> TRANSFERS_BATCH_SIZE =
      new Setting<>(
          PREFIX + "transfers.batchSize",
          SettingTypes.bytes(1, GIB),
          4 * MIB,
          APPLICATION,
          "Bytes at which a batch of deferred transfers is sent.");

  /** Age of a batch of transfers. */
  public static final Setting<Duration> TRANSFERS_BATCH_AGE =
      new Setting<>(
          PREFIX + "transfers.batchAge",
          SettingTypes.duration(Duration.ofMillis(1), Duration.ofMinutes(1)),
          Duration.ofMillis(5),
          APPLICATION,
          "Age at which a smaller batch of deferred transfers is sent. A batch that a task"
              + " waits for is sent at once.");

  /** The timeout of a transfer. */
  public static final Setting<Duration> TRANSFERS_DEADLINE =
      new Setting<>(
          PREFIX + "transfers.deadline",
          SettingTypes.duration(Duration.ofMillis(100), Duration.ofDays(1)),
          Duration.ofMinutes(2),
          APPLICATION,
          "Timeout of a transfer from the time it is sent. It then fails with the names of"
              + " both ends.");

  /** The idle time of a communicator of transfers. */
  public static final Setting<Duration> TRANSFERS_IDLE =
      new Setting<>(
          PREFIX + "transfers.idle",
          SettingTypes.duration(Duration.ofSeconds(1), Duration.ofDays(1)),
          Duration.ofMinutes(5),
          APPLICATION,
          "Idle time after which two executors close the communicator between them. The"
              + " next transfer creates a new one.");

  /** GPU memory for received arrays. */
  public static final Setting<Long> TRANSFERS_GPU_MEMORY =
      new Setting<>(
          PREFIX + "transfers.gpuMemory",
          SettingTypes.bytes(2 * MIB, TIB),
          GIB,
          APPLICATION,
          "GPU memory of each executor for arrays that it receives, allocated when needed"
              + " and kept until the executor ends.");

  /** Whether NCCL gets arrays before the GPU has written them. */
  public static final Setting<Boolean> TRANSFERS_FOLLOW_DEVICES =
      new Setting<>(
          PREFIX + "transfers.followDevices",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether the GPU, not the host, waits for the work that writes an array before"
              + " NCCL sends it. Set it to false if that work may hang, or needs data that the"
              + " same two GPUs exchange later.");

  /** GPU memory for feeds. */
  public static final Setting<Long> GPU_MEMORY =
      new Setting<>(
          PREFIX + "gpu.memory",
          SettingTypes.bytes(MIB, TIB),
          4 * GIB,
          APPLICATION,
          "GPU memory of each executor for batches and exports of feeds, allocated when"
              + " needed and kept until the executor ends. A rank needs at least two batches, an"
              + " export all of its batches.");

  /** GPU memory for rows that go from GPU to GPU. */
  public static final Setting<Long> GPU_EXCHANGE_MEMORY =
      new Setting<>(
          PREFIX + "gpu.exchangeMemory",
          SettingTypes.bytes(MIB, TIB),
          4 * GIB,
          APPLICATION,
          "GPU memory of each executor for batches of queries and rows that go from GPU to"
              + " GPU. Data beyond it goes to pinned memory, then to spark.weft.memory.size and"
              + " the local folders.");

  /** Pinned memory for data beyond the GPU's budget. */
  public static final Setting<Long> GPU_PINNED_MEMORY =
      new Setting<>(
          PREFIX + "gpu.pinnedMemory",
          SettingTypes.bytes(4 * MIB, TIB),
          256 * MIB,
          APPLICATION,
          "Pinned host memory of each executor for data beyond"
              + " spark.weft.gpu.exchangeMemory.");

  /** Blocks on their way to a task's GPU. */
  public static final Setting<Long> GPU_FETCH_AHEAD =
      new Setting<>(
          PREFIX + "gpu.fetchAhead",
          SettingTypes.bytes(0, TIB),
          64 * MIB,
          APPLICATION,
          "Bytes that may be on their way from other GPUs while a task works on earlier batches,"
              + " in memory of spark.weft.transfers.gpuMemory. 0: none.");

  /** Classes that name functions on batches. */
  public static final Setting<String> GPU_FUNCTIONS =
      new Setting<>(
          PREFIX + "gpu.functions",
          SettingTypes.classNames(),
          "",
          APPLICATION,
          "Classes that implement Runnable and call WeftGpu.register. They run when SQL has a name that"
              + " is not registered.");

  /** How tensors are encoded in shuffles of RDDs. */
  public static final Setting<CodecKind> TENSORS_CODEC =
      new Setting<>(
          PREFIX + "tensors.codec",
          SettingTypes.choice(CodecKind.class),
          CodecKind.NONE,
          APPLICATION,
          "How tensors are encoded in shuffles of RDDs. zstd compresses all types without"
              + " loss. bfloat16, float8_e4m3 and float8_e5m2 round float32 elements to 2 bytes or"
              + " 1 byte and leave other types unchanged; the 8-bit codecs scale by each tensor's"
              + " largest element.");

  /** The batch at which ranks of a feed write a debug file. */
  public static final Setting<Integer> DEBUG_DUMP_STEP =
      new Setting<>(
          PREFIX + "debug.dumpStep",
          SettingTypes.integer(-1, Integer.MAX_VALUE),
          -1,
          SESSION,
          "The batch, counted from 0 through a feed's epochs, at which each rank writes a"
              + " debug file. -1: never.");

  /** The folder of the debug files. */
  public static final Setting<String> DEBUG_DUMP_FOLDER =
      new Setting<>(
          PREFIX + "debug.dumpFolder",
          SettingTypes.absolutePath("empty (choose)"),
          "",
          SESSION,
          "Folder on the executors' hosts for debug files, such as"
              + " APPLICATION-feed-7-rank-0.json for feed 7. Empty takes weft-dump in the"
              + " executor's working folder.");

  /** Whether the Spark UI gets a Weft tab. */
  public static final Setting<Boolean> UI_ENABLED =
      new Setting<>(
          PREFIX + "ui.enabled",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether Spark's UI and history server get a Weft tab, for which executors report"
              + " to the driver.");

  /** Whether the driver collects garbage when an executor's memory is full. */
  public static final Setting<Boolean> DRIVER_COLLECT =
      new Setting<>(
          PREFIX + "driver.collect",
          SettingTypes.bool(),
          true,
          APPLICATION,
          "Whether the driver collects its garbage when an executor's memory is full,"
              + " because Spark frees a shuffle only after that. Pauses start at 10 s and double"
              + " after each collection that frees no shuffle. After five of these it waits until"
              + " a shuffle ends.");

  private static final List<Setting<?>> BEFORE_MEMORY =
      List.of(
          ENABLED,
          ROUTE,
          REPORTED_SIZES,
          RDD_STREAMS,
          FALLBACK_FAILURES,
          TRANSPORT,
          NCCL_LIBRARY,
          NCCL_ALLOW_UNENCRYPTED,
          PORT);

  private static final List<Setting<?>> AFTER_MEMORY =
      List.of(
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
          COLLECTIVES_GPU_MEMORY,
          TRANSFERS_BATCH_SIZE,
          TRANSFERS_BATCH_AGE,
          TRANSFERS_DEADLINE,
          TRANSFERS_IDLE,
          TRANSFERS_GPU_MEMORY,
          TRANSFERS_FOLLOW_DEVICES,
          GPU_MEMORY,
          GPU_EXCHANGE_MEMORY,
          GPU_PINNED_MEMORY,
          GPU_FETCH_AHEAD,
          GPU_FUNCTIONS,
          TENSORS_CODEC,
          DEBUG_DUMP_STEP,
          DEBUG_DUMP_FOLDER,
          DRIVER_COLLECT,
          UI_ENABLED);

  private static final List<Setting<?>> ALL =
      Stream.of(
              BEFORE_MEMORY,
              MemorySettings.all(),
              AdoptionSettings.all(),
              SurviveSettings.all(),
              AFTER_MEMORY,
              TraceSettings.all())
          .flatMap(List::stream)
          .toList();

  private WeftSettings() {}

  /** Whether Spark encrypts its local folders, so that Weft does as well. */
  public static boolean isDiskEncrypted(SparkConf conf) {
    return conf.getBoolean(DISK_ENCRYPTION, false);
  }

  /** All settings, in the order of the documentation. */
  public static List<Setting<?>> all() {
    return ALL;
  }
}
