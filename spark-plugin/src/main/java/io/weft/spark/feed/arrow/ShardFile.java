package io.weft.spark.feed.arrow;

import com.google.flatbuffers.FlatBufferBuilder;
import io.weft.memory.Memory;
import io.weft.spark.columns.ChunkView;
import io.weft.spark.feed.arrow.ArrowFields.ArrowBuffers;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.flatbuf.Buffer;
import org.apache.arrow.flatbuf.FieldNode;
import org.apache.arrow.flatbuf.MessageHeader;
import org.apache.arrow.flatbuf.RecordBatch;
import org.apache.arrow.vector.ipc.message.ArrowBlock;
import org.apache.arrow.vector.ipc.message.ArrowFooter;
import org.apache.arrow.vector.ipc.message.IpcOption;
import org.apache.arrow.vector.ipc.message.MessageSerializer;
import org.apache.arrow.vector.types.pojo.Schema;
import org.apache.spark.sql.types.StructType;

/**
 * Writes chunks as an Arrow IPC file whose buffers all start at multiples of 64 bytes of the file.
 * Arrow's own Java writer aligns to 8. A chunk is written in one piece as a record batch's body; no
 * buffer refers to the header of the chunk. For one thread.
 *
 * <pre>
 *   "ARROW1", zeros to 64
 *   schema message
 *   record batch message, padded so that its body starts at a multiple of 64; chunk   ... any number
 *   end of stream, footer, its length, "ARROW1"
 * </pre>
 *
 * <p>Format: <a href="https://arrow.apache.org/docs/format/Columnar.html#ipc-file-format">Arrow
 * columnar format, IPC file format</a>.
 */
public final class ShardFile implements AutoCloseable {
  private static final byte[] MAGIC = "ARROW1".getBytes(StandardCharsets.US_ASCII);
  private static final int CONTINUATION = -1;
  private static final int PREFIX_BYTES = 8;
  private static final int ALIGNMENT = 64;

  private final StructType schema;
  private final Schema arrow;
  private final FileChannel file;
  private final List<ArrowBlock> blocks = new ArrayList<>();
  private long position;

  private ShardFile(Path path, StructType schema) throws IOException {
    this.schema = schema;
    this.arrow = ArrowFields.of(schema);
    this.file = FileChannel.open(path, StandardOpenOption.WRITE);
  }

  /**
   * Checks that files of a schema can be written.
   *
   * @throws IllegalArgumentException naming a column that has no Arrow form
   */
  public static void requireArrowForm(StructType schema) {
    Schema unused = ArrowFields.of(schema);
  }

  /**
   * Starts a file.
   *
   * @param path of an empty file
   * @return for the caller to close
   */
  public static ShardFile start(Path path, StructType schema) throws IOException {
    ShardFile started = new ShardFile(path, schema);
    try {
      started.begin();
      return started;
    } catch (IOException | RuntimeException | Error e) {
      started.close();
      throw e;
    }
  }

  private void begin() throws IOException {
    write(ByteBuffer.wrap(MAGIC));
    align();
    int unused = message(MessageSerializer.serializeMetadata(arrow, IpcOption.DEFAULT));
  }

  /** Adds a record batch. */
  public void add(ChunkView chunk) throws IOException {
    long offset = position;
    int metadata = message(metadata(chunk));
    write(Memory.view(chunk, chunk.address(), Math.toIntExact(chunk.length())));
    blocks.add(new ArrowBlock(offset, metadata, chunk.length()));
  }

  private ByteBuffer metadata(ChunkView chunk) {
    Layout layout = new Layout(chunk.address());
    ArrowBuffers.walk(schema, arrow, chunk, layout);
    FlatBufferBuilder builder = new FlatBufferBuilder();
    RecordBatch.startNodesVector(builder, layout.nodes.size());
    for (int i = layout.nodes.size() - 1; i >= 0; i--) {
      FieldNode.createFieldNode(builder, layout.nodes.get(i)[0], layout.nodes.get(i)[1]);
    }
    int nodes = builder.endVector();
    RecordBatch.startBuffersVector(builder, layout.buffers.size());
    for (int i = layout.buffers.size() - 1; i >= 0; i--) {
      Buffer.createBuffer(builder, layout.buffers.get(i)[0], layout.buffers.get(i)[1]);
    }
    int buffers = builder.endVector();
    RecordBatch.startRecordBatch(builder);
    RecordBatch.addLength(builder, chunk.rows());
    RecordBatch.addNodes(builder, nodes);
    RecordBatch.addBuffers(builder, buffers);
    int batch = RecordBatch.endRecordBatch(builder);
    return MessageSerializer.serializeMessage(
        builder, MessageHeader.RecordBatch, batch, chunk.length(), IpcOption.DEFAULT);
  }

  /** Collects the nodes and buffers of a record batch, relative to its body. */
  private static final class Layout implements ArrowBuffers.Target {
    private final long start;
    private final List<long[]> nodes = new ArrayList<>();
    private final List<long[]> buffers = new ArrayList<>();

    Layout(long start) {
      this.start = start;
    }

    @Override
    public void node(int values, int nulls) {
      nodes.add(new long[] {values, nulls});
    }

    /** Arrow allows a missing bitmap if there are no nulls. */
    @Override
    public void allValid(int values) {
      buffers.add(new long[] {0, 0});
    }

    @Override
    public void buffer(long address, long bytes) {
      buffers.add(new long[] {address - start, bytes});
    }
  }

  /** Writes a message up to the start of its body; returns its bytes. */
  private int message(ByteBuffer metadata) throws IOException {
    long start = position;
    long end = roundUp(start + PREFIX_BYTES + metadata.remaining());
    write(numbers(CONTINUATION, (int) (end - start - PREFIX_BYTES)));
    write(metadata);
    align();
    return (int) (end - start);
  }

  /** Completes the file; no reader accepts it before. */
  public void finish() throws IOException {
    write(numbers(CONTINUATION, 0));
    FlatBufferBuilder builder = new FlatBufferBuilder();
    builder.finish(new ArrowFooter(arrow, List.of(), blocks).writeTo(builder));
    ByteBuffer footer = builder.dataBuffer();
    int bytes = footer.remaining();
    write(footer);
    write(numbers(bytes));
    write(ByteBuffer.wrap(MAGIC));
  }

  /** Number of bytes written so far. */
  public long bytes() {
    return position;
  }

  private static ByteBuffer numbers(int... numbers) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * numbers.length).order(ByteOrder.LITTLE_ENDIAN);
    for (int number : numbers) {
      bytes.putInt(number);
    }
    return bytes.flip();
  }

  private static long roundUp(long bytes) {
    return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
  }

  private void align() throws IOException {
    write(ByteBuffer.allocate((int) (roundUp(position) - position)));
  }

  private void write(ByteBuffer bytes) throws IOException {
    position += bytes.remaining();
    while (bytes.hasRemaining()) {
      int unused = file.write(bytes);
    }
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
