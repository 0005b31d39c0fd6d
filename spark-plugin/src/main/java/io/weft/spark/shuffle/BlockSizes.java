package io.weft.spark.shuffle;

import io.weft.spark.config.ReportedSizes;
import io.weft.spark.config.WeftSettings;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.io.CompressionCodec;
import org.apache.spark.io.CompressionCodec$;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/**
 * Estimates the sizes that blocks of rows would have in Spark's sort shuffle: serialized, and
 * compressed with Spark's codec. Adaptive execution plans by these sizes, so it plans as without
 * Weft.
 *
 * <p>A map task compresses the starts of a few blocks and fits a model to them. The serialized
 * bytes are exact. Small outputs are compressed as a whole, so their sizes are Spark's. The first
 * tasks of a shuffle on an executor take samples, and later ones ever more rarely; the others use
 * the last model.
 *
 * <p>Thread-safe: all tasks of an executor share it.
 */
public final class BlockSizes {
  /**
   * Tasks of a shuffle that all take samples. After them, tasks number 32, 64, 128 and so on do.
   */
  private static final int SAMPLING_TASKS = 17;

  private final boolean real;
  private final CompressionCodec codec;

  /** Compressed bytes of no rows. */
  private final long endBytes;

  private final Map<Integer, ShuffleSizes> shuffles = new ConcurrentHashMap<>();

  /** What the tasks of a shuffle on this executor share. */
  private static final class ShuffleSizes {
    private final AtomicInteger tasks = new AtomicInteger();
    private volatile SizeModel model;

    /** Returns the model that the next task uses, or null if it takes samples. */
    SizeModel next() {
      int task = tasks.getAndIncrement();
      boolean sampling = task < SAMPLING_TASKS || (task & (task - 1)) == 0;
      return sampling ? null : model;
    }
  }

  /** Creates sizes for an application. */
  BlockSizes(SparkConf conf) {
    real = WeftSettings.REPORTED_SIZES.get(conf) == ReportedSizes.REAL;
    codec =
        conf.getBoolean("spark.shuffle.compress", true)
            ? CompressionCodec$.MODULE$.createCodec(conf)
            : null;
    endBytes = real || codec == null ? 0 : compressedBytes(new byte[0], 0);
  }

  /** Opens the sizes of one map task. */
  public TaskSizes open(int shuffleId, int partitions) {
    if (real || codec == null) {
      return new TaskSizes(this, null, null, partitions);
    }
    ShuffleSizes shuffle = shuffles.computeIfAbsent(shuffleId, id -> new ShuffleSizes());
    return new TaskSizes(this, shuffle, shuffle.next(), partitions);
  }

  /** Forgets a shuffle. */
  void forget(int shuffleId) {
    shuffles.remove(shuffleId);
  }

  /**
   * The sizes of a map task's blocks. The caller adds all rows, and a sample where it is wanted.
   * For one task thread.
   */
  public static final class TaskSizes {
    /** Bytes of a row's size in Spark's serialized form. */
    private static final int SIZE_BYTES = Integer.BYTES;

    /** A model replaces one that was fitted to at most this many times as many bytes. */
    private static final int LEAST_PART = 4;

    private static final int SAMPLED_PARTITIONS = 16;
    private static final int LEAST_SAMPLES = 4;
    private static final int MAX_SAMPLES = 28;
    private static final int MAX_BYTES = 256 << 10;

    /** Outputs up to this many bytes are compressed as a whole. */
    private static final int WHOLE_BYTES = 4 << 10;

    private static final int MAX_SAMPLE_BYTES = 32 << 10;

    private final BlockSizes owner;
    private final ShuffleSizes shuffle;
    private final SizeModel known;
    private final long[] serialized;
    private final int stride;
    private final Map<Integer, RowSample> samples = new HashMap<>();

    /** Partitions whose samples are dropped unless the output is compressed as a whole. */
    private final Set<Integer> extras = new HashSet<>();

    private int bytesLeft = MAX_BYTES;

    /** The most bytes of a partition when its sample was begun. */
    private long largest;

    private TaskSizes(BlockSizes owner, ShuffleSizes shuffle, SizeModel known, int partitions) {
      this.owner = owner;
      this.shuffle = shuffle;
      this.known = known;
      this.serialized = new long[partitions];
      this.stride = (partitions + SAMPLED_PARTITIONS - 1) / SAMPLED_PARTITIONS;
    }

    /**
     * Adds rows of a partition.
     *
     * @param packedBytes of the rows in Spark's packed format
     * @return whether a sample of these rows is wanted
     */
    public boolean add(int partition, long packedBytes, long rows) {
      boolean first = serialized[partition] == 0;
      serialized[partition] += packedBytes + SIZE_BYTES * rows;
      if (shuffle == null || known != null || bytesLeft == 0) {
        return false;
      }
      RowSample begun = samples.get(partition);
      if (begun != null && !extras.contains(partition)) {
        return !begun.isFull();
      }
      // Large partitions matter most: they come back, or have much more rows than the others.
      boolean large = !first || serialized[partition] > 2 * largest;
      int chosen = samples.size() - extras.size();
      if (chosen < MAX_SAMPLES && (large || partition % stride == 0 || chosen < LEAST_SAMPLES)) {
        extras.remove(partition);
        largest = Math.max(largest, serialized[partition]);
      } else if (MAX_BYTES - bytesLeft < WHOLE_BYTES) {
        extras.add(partition);
      } else {
        return false;
      }
      return begun == null || !begun.isFull();
    }

    /** Returns the sample of a partition, to which the caller adds rows until it is full. */
    public RowSample sample(int partition) {
      return samples.computeIfAbsent(partition, begun -> new RowSample(this));
    }

    /**
     * Returns the sizes to report to Spark.
     *
     * @param written bytes of the blocks in Weft's format; 0 for empty blocks
     * @return at least 1 for each block that is not empty
     */
    public long[] reported(long[] written) {
      if (owner.real) {
        return written;
      }
      if (Arrays.stream(serialized).sum() > WHOLE_BYTES) {
        samples.keySet().removeAll(extras);
      }
      Map<Integer, BlockSample> compressed = new HashMap<>();
      samples.forEach((partition, sample) -> compressed.put(partition, sample.compress()));
      SizeModel model = model(compressed);
      long[] sizes = new long[written.length];
      for (int partition = 0; partition < sizes.length; partition++) {
        if (written[partition] > 0) {
          BlockSample own = compressed.get(partition);
          sizes[partition] = Math.max(1, size(partition, own, model));
        }
      }
      return sizes;
    }

    private long size(int partition, BlockSample own, SizeModel model) {
      if (model == null) {
        return serialized[partition];
      }
      return own != null && own.plain() == serialized[partition]
          ? own.compressed()
          : model.size(partition, serialized[partition]);
    }

    /** Returns the model of this task's samples, which later tasks use too. */
    private SizeModel model(Map<Integer, BlockSample> compressed) {
      if (compressed.isEmpty()) {
        return known;
      }
      SizeModel fitted = SizeModel.fit(compressed, owner.endBytes);
      SizeModel shared = shuffle.model;
      // The last, short task of a stage tells less than those before it.
      if (shared == null || fitted.sampledBytes >= shared.sampledBytes / LEAST_PART) {
        shuffle.model = fitted;
      }
      return fitted;
    }
  }

  private long compressedBytes(byte[] bytes, int length) {
    CountingStream counter = new CountingStream();
    try (OutputStream out = codec.compressedOutputStream(counter)) {
      out.write(bytes, 0, length);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return counter.count;
  }

  /** Counts bytes and drops them. */
  private static final class CountingStream extends OutputStream {
    private long count;

    @Override
    public void write(int b) {
      count++;
    }

    @Override
    public void write(byte[] bytes, int offset, int length) {
      count += length;
    }
  }

  /** The start of a block in Spark's serialized form. For one task thread. */
  public static final class RowSample {
    private final TaskSizes task;
    private byte[] bytes = new byte[1 << 10];
    private int length;

    private RowSample(TaskSizes task) {
      this.task = task;
    }

    /** Whether it takes no more rows. */
    public boolean isFull() {
      return length == TaskSizes.MAX_SAMPLE_BYTES || task.bytesLeft == 0;
    }

    /** Appends a row, or the part of it that fits. */
    public void add(UnsafeRow row) {
      int size = row.getSizeInBytes();
      int room = Math.min(TaskSizes.MAX_SAMPLE_BYTES - length, task.bytesLeft);
      int added = (int) Math.min(room, (long) TaskSizes.SIZE_BYTES + size);
      if (bytes.length < length + added) {
        bytes = Arrays.copyOf(bytes, Math.max(length + added, 2 * bytes.length));
      }
      int head = Math.min(TaskSizes.SIZE_BYTES, added);
      for (int i = 0; i < head; i++) {
        bytes[length + i] = (byte) (size >> (24 - 8 * i));
      }
      Platform.copyMemory(
          row.getBaseObject(),
          row.getBaseOffset(),
          bytes,
          Platform.BYTE_ARRAY_OFFSET + length + head,
          added - head);
      length += added;
      task.bytesLeft -= added;
    }

    private BlockSample compress() {
      return new BlockSample(length, task.owner.compressedBytes(bytes, length));
    }
  }

  /**
   * A compressed start of a block.
   *
   * @param plain its bytes before compression
   * @param compressed its bytes after compression
   */
  record BlockSample(int plain, long compressed) {
    /** Shorter samples say little about longer blocks. */
    private static final int TELLING_BYTES = 8 << 10;

    boolean isTelling() {
      return plain >= TELLING_BYTES;
    }

    /** Compressed bytes for each byte of a longer block. */
    double ratio(long endBytes) {
      return (double) (compressed - endBytes) / plain;
    }
  }

  /**
   * Compressed sizes as a linear function of serialized sizes, fitted by least squares. Large
   * partitions with a sample have their own ratio, because a frequent key compresses better.
   *
   * @param overhead bytes of each block
   * @param endBytes compressed bytes of no rows
   * @param slope compressed bytes for each serialized byte
   * @param ratios compressed to serialized bytes of some partitions
   * @param sampledBytes serialized bytes of the samples
   */
  record SizeModel(
      double overhead,
      double slope,
      Map<Integer, Double> ratios,
      long endBytes,
      long sampledBytes) {
    static SizeModel fit(Map<Integer, BlockSample> samples, long endBytes) {
      Map<Integer, Double> ratios = new HashMap<>();
      samples.forEach(
          (partition, sample) -> {
            if (sample.isTelling()) {
              ratios.put(partition, sample.ratio(endBytes));
            }
          });
      List<BlockSample> all = new ArrayList<>(samples.values());
      double plain = all.stream().mapToDouble(BlockSample::plain).average().orElseThrow();
      double compressed = all.stream().mapToDouble(BlockSample::compressed).average().orElseThrow();
      double spread = 0;
      double common = 0;
      for (BlockSample sample : all) {
        spread += (sample.plain() - plain) * (sample.plain() - plain);
        common += (sample.plain() - plain) * (sample.compressed() - compressed);
      }
      long bytes = all.stream().mapToLong(BlockSample::plain).sum();
      double slope = common / spread;
      double overhead = compressed - slope * plain;
      // Samples of about the same size tell a ratio only.
      return spread > 0.01 * plain * plain * all.size() && slope > 0 && overhead >= 0
          ? new SizeModel(overhead, slope, ratios, endBytes, bytes)
          : new SizeModel(
              (double) endBytes, (compressed - endBytes) / plain, ratios, endBytes, bytes);
    }

    long size(int partition, long serialized) {
      Double ratio = ratios.get(partition);
      boolean own = ratio != null && serialized >= BlockSample.TELLING_BYTES;
      return Math.round(own ? endBytes + ratio * serialized : overhead + slope * serialized);
    }
  }
}
