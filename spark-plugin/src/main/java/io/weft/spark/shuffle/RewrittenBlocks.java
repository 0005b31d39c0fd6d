package io.weft.spark.shuffle;

import io.weft.shuffle.ExecutorExchange;
import io.weft.shuffle.fetch.BlockRequest;
import io.weft.shuffle.fetch.ChunkReader;
import io.weft.shuffle.fetch.FetchListener;
import io.weft.spark.shuffle.RecordsReader.PackedRows;
import io.weft.spark.shuffle.RecordsReader.RecordFormat;
import io.weft.spark.shuffle.StreamReader.Report;
import io.weft.spark.shuffle.StreamReader.StreamedRecords;
import java.io.BufferedOutputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.network.buffer.FileSegmentManagedBuffer;
import org.apache.spark.network.buffer.ManagedBuffer;
import org.apache.spark.network.netty.SparkTransportConf;
import org.apache.spark.network.util.TransportConf;
import org.apache.spark.serializer.SerializationStream;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.execution.UnsafeRowSerializer;
import org.apache.spark.storage.BlockId;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.Product2;
import scala.reflect.ClassTag;

/**
 * Rewrites blocks of Weft as Spark's sort shuffle would have stored them: serialized, compressed
 * and encrypted. Libraries need this if they fetch blocks by Spark's fetch iterator instead of the
 * shuffle manager's reader, as Delta's optimized write does.
 *
 * <p>Each request writes the block to a temporary file, because its size must be known before the
 * first byte and an iterator requests all of its local blocks at once. The file goes with the last
 * reference to the block.
 *
 * <p>Thread-safe.
 */
final class RewrittenBlocks {
  private static final long ALIGNMENT_MASK = Long.BYTES - 1;

  /** Reports nothing, and fails with an I/O exception. */
  private static final Report NO_TASK =
      new Report() {
        @Override
        public void checkKilled() {}

        @Override
        public void read(long records) {}

        @Override
        public Exception failure(
            BlockRequest request, int partition, String message, Throwable cause) {
          return new IOException(message, cause);
        }
      };

  private final SparkConf conf;
  private final TransportConf transport;
  private final Map<Integer, RecordForm> forms = new ConcurrentHashMap<>();

  RewrittenBlocks(SparkConf conf) {
    this.conf = conf;
    this.transport =
        SparkTransportConf.fromSparkConf(conf, "shuffle", 1, Option.empty(), Option.empty());
  }

  /** Remembers how records of a shuffle are stored. Called for each task of the shuffle. */
  void learn(ShuffleDependency<?, ?, ?> dependency) {
    forms.computeIfAbsent(dependency.shuffleId(), shuffle -> RecordForm.of(dependency, conf));
  }

  /** Forgets a removed shuffle. */
  void forget(int shuffleId) {
    forms.remove(shuffleId);
  }

  /**
   * Reads a block and writes it in Spark's form.
   *
   * @param id under which the reader decompresses the block
   * @return a buffer that owns its file
   * @throws IOException if the block cannot be read, or has no form of Spark
   */
  ManagedBuffer rewrite(ExecutorExchange exchange, BlockRequest request, BlockId id)
      throws IOException {
    RecordForm form = form(request);
    SparkEnv env = SparkEnv.get();
    File file = env.blockManager().diskBlockManager().createTempLocalBlock()._2();
    boolean written = false;
    try {
      try (ChunkReader chunks = exchange.read(List.of(request), FetchListener.NONE);
          OutputStream out = new BufferedOutputStream(Files.newOutputStream(file.toPath()));
          SerializationStream records = form.open(env.serializerManager().wrapStream(id, out))) {
        if (form.route() == RecordRoute.STREAMS) {
          copyStreams(chunks, form.serializer(), records);
        } else {
          copy(chunks, form.newFormat(), records);
        }
      }
      // Streams write their last bytes when they are closed.
      written = true;
    } finally {
      // Serializers throw undeclared exceptions, for example of a class that is not found.
      if (!written) {
        Files.deleteIfExists(file.toPath());
      }
    }
    return new TemporaryBlock(file, transport);
  }

  /** Without a task of the shuffle in this executor, only its settings tell the form. */
  private RecordForm form(BlockRequest request) throws IOException {
    RecordForm known = forms.get(request.key().shuffleId());
    if (RecordForm.NONE.equals(known)) {
      throw new IOException(
          request.key()
              + " has batches of columns or arrays, which only the reader of its shuffle can read;"
              + " set spark.weft.enabled=false for a program that fetches blocks by itself");
    }
    if (known == null && KryoRecords.areAskedFor(conf)) {
      throw new IOException(
          request.key()
              + ": no task of this shuffle has run in this executor, so the form of its records is"
              + " unknown here");
    }
    return known == null ? RecordForm.ROWS : known;
  }

  private static void copy(
      ChunkReader chunks, RecordFormat<Object, Object> format, SerializationStream out)
      throws IOException {
    while (chunks.next()) {
      long at = chunks.address();
      long end = at + chunks.length();
      while (at < end) {
        long room = end - at - Long.BYTES;
        long size = room < 0 ? -1 : Platform.getLong(null, at);
        if (size < 0 || size > room || (size & ALIGNMENT_MASK) != 0) {
          throw new IOException(
              "%s, partition %d, has no record of %d bytes where %d are left"
                  .formatted(chunks.request().key(), chunks.partition(), size, room));
        }
        write(format.read(at + Long.BYTES, (int) size), out);
        at += Long.BYTES + size;
      }
    }
  }

  private static void copyStreams(
      ChunkReader chunks, Serializer serializer, SerializationStream out) {
    StreamedRecords<Object, Object> records =
        new StreamedRecords<>(chunks, serializer.newInstance(), NO_TASK);
    while (records.hasNext()) {
      write(records.next(), out);
    }
  }

  private static void write(Product2<Object, Object> record, SerializationStream out) {
    out.writeKey(record._1(), ClassTag.Any());
    out.writeValue(record._2(), ClassTag.Any());
  }

  /**
   * How records of a shuffle are stored and how Spark serializes them.
   *
   * @param serializer the dependency's serializer, without its metrics; null if there is none
   */
  private record RecordForm(RecordRoute route, Serializer serializer) {
    /** Chunks that only the reader of their dependency understands. */
    static final RecordForm NONE = new RecordForm(null, null);

    /** Packed rows. The number of fields is of no matter for writing. */
    static final RecordForm ROWS =
        new RecordForm(RecordRoute.ROWS, new UnsafeRowSerializer(0, null));

    static RecordForm of(ShuffleDependency<?, ?, ?> dependency, SparkConf conf) {
      if (dependency instanceof ExchangeDependency) {
        return NONE;
      }
      RecordRoute route = RecordRoute.of(dependency, conf);
      return route == RecordRoute.ROWS ? ROWS : new RecordForm(route, dependency.serializer());
    }

    RecordFormat<Object, Object> newFormat() {
      return route == RecordRoute.ROWS ? new PackedRows<>(0) : new KryoRecords<>(serializer);
    }

    SerializationStream open(OutputStream out) {
      return serializer.newInstance().serializeStream(out);
    }
  }

  /**
   * A block in a temporary file. Spark releases a buffer once for each time that it retained it,
   * and the buffers that it sends to other executors once without that. A request that fails at one
   * block leaves the buffers before it to the garbage collector.
   */
  private static final class TemporaryBlock extends ManagedBuffer {
    private static final Cleaner CLEANER = Cleaner.create();

    private final FileSegmentManagedBuffer bytes;
    private final Cleaner.Cleanable deletion;
    private final AtomicInteger references = new AtomicInteger();

    TemporaryBlock(File file, TransportConf transport) {
      this.bytes = new FileSegmentManagedBuffer(transport, file, 0, file.length());
      this.deletion = CLEANER.register(this, new Deletion(file));
    }

    private record Deletion(File file) implements Runnable {
      @Override
      public void run() {
        boolean unused = file.delete(); // False if another program has deleted it.
      }
    }

    @Override
    public long size() {
      return bytes.size();
    }

    @Override
    public ByteBuffer nioByteBuffer() throws IOException {
      return bytes.nioByteBuffer();
    }

    @Override
    public InputStream createInputStream() throws IOException {
      return bytes.createInputStream();
    }

    @Override
    public ManagedBuffer retain() {
      references.incrementAndGet();
      return this;
    }

    @Override
    public ManagedBuffer release() {
      if (references.decrementAndGet() <= 0) {
        deletion.clean();
      }
      return this;
    }

    @Override
    public Object convertToNetty() throws IOException {
      return bytes.convertToNetty();
    }

    @Override
    public Object convertToNettyForSsl() throws IOException {
      return bytes.convertToNettyForSsl();
    }
  }
}
