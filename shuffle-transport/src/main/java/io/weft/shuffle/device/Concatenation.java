package io.weft.shuffle.device;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaKernel;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaModule;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.KernelArguments;
import io.weft.memory.Memory;
import io.weft.shuffle.device.Concatenation.ConcatenationKernels.Tables;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * A concatenation in progress. The memory for the result exists from the beginning. The tables
 * arrive one after the other, so they need not be on the device together. For one thread.
 */
public final class Concatenation implements AutoCloseable {
  private final CudaLane lane;
  private final ConcatenationKernels kernels;
  private final ConcatenationPlan plan;
  private final CudaMemory run;
  private final CudaMemory here;
  private final CudaMemory there;

  /** The end of each column so far, within the result; for strings, also the bytes so far. */
  private final long[] ends;

  private final long[] strings;

  /** Tables that are not enqueued yet. */
  private final List<DeviceTable> waiting = new ArrayList<>();

  private int added;
  private int enqueued;
  private long chunks;
  private long enqueuedChunks;
  private Event ready = HostEvent.completed("no table concatenated yet");
  private boolean finished;

  /** Takes ownership of all memory. */
  Concatenation(
      CudaLane lane,
      ConcatenationKernels kernels,
      ConcatenationPlan plan,
      CudaMemory run,
      CudaMemory here,
      CudaMemory there) {
    this.lane = lane;
    this.kernels = kernels;
    this.plan = plan;
    this.run = run;
    this.here = here;
    this.there = there;
    this.ends = new long[plan.columns()];
    this.strings = new long[plan.columns()];
    for (int c = 0; c < ends.length; c++) {
      ends[c] = plan.layout().data(c);
    }
    plan.writeHead(here.address(), run.address());
  }

  /**
   * Adds the next table. It must stay open until the next {@link #enqueue} or {@link #finish},
   * which keeps its memory as long as needed.
   *
   * @param table of the layout that was announced. The offsets of its strings start with 0 and end
   *     with the size of their bytes, as in tables that Weft packs
   * @throws IllegalArgumentException if its layout differs
   */
  public void add(DeviceTable table) {
    if (table.rows() == 0) {
      return;
    }
    if (added == plan.tables().size() || !table.layout().equals(plan.tables().get(added))) {
      throw new IllegalArgumentException(
          "table %d is %s, which was not announced".formatted(added, table));
    }
    long at = here.address() + plan.pieces(added);
    for (int c = 0; c < ends.length; c++) {
      writePiece(at + c * ConcatenationPlan.PIECE_BYTES, table, c);
    }
    waiting.add(table);
    added++;
  }

  private void writePiece(long at, DeviceTable table, int column) {
    TableLayout layout = table.layout();
    TableColumn type = layout.columns().get(column);
    long start = table.address();
    long bytes = layout.dataBytes(column);
    boolean isString = type.kind().isString();
    Memory.putLong(at, type.nullable() ? start + layout.validity(column) : 0);
    Memory.putLong(at + 8, isString ? start + layout.offsets(column) : 0);
    Memory.putLong(at + 16, start + layout.data(column));
    Memory.putLong(at + 24, run.address() + ends[column]);
    Memory.putLong(at + 32, bytes);
    Memory.putLong(at + 40, strings[column]);
    Memory.putLong(at + 48, chunks);
    Memory.putLong(at + 56, 0);
    ends[column] += bytes;
    strings[column] += layout.stringBytes(column);
    chunks += (bytes + ConcatenationKernels.CHUNK - 1) / ConcatenationKernels.CHUNK;
  }

  /**
   * Enqueues the copies of the tables added so far, after their events.
   *
   * @return ends with the copies; until then the tables are kept, even if they are closed
   */
  public Event enqueue() {
    if (waiting.isEmpty()) {
      return ready;
    }
    Event[] after = new Event[waiting.size() + 1];
    for (int i = 0; i < waiting.size(); i++) {
      after[i] = waiting.get(i).ready();
    }
    after[waiting.size()] = ready;
    Event copied = lane.submit("concatenating tables to " + plan.layout(), launches(), after);
    waiting.forEach(table -> table.usedUntil(copied));
    run.usedUntil(copied);
    here.usedUntil(copied);
    there.usedUntil(copied);
    kernels.usedUntil(copied);
    waiting.clear();
    enqueued = added;
    enqueuedChunks = chunks;
    ready = copied;
    return copied;
  }

  private Lane.Work launches() {
    int first = enqueued;
    int end = added;
    long firstChunk = enqueuedChunks;
    long endChunk = chunks;
    long firstRow = Memory.getLong(here.address() + ConcatenationPlan.first(first));
    long endRow = Memory.getLong(here.address() + ConcatenationPlan.first(end));
    long result = run.address();
    long resultBytes = run.bytes();
    long from = here.address();
    long to = there.address();
    Tables tables =
        new Tables(
            result,
            to + ConcatenationPlan.first(first),
            to + plan.pieces(first),
            end - first,
            ends.length);
    return () -> {
      CudaStream stream = lane.stream();
      if (first == 0) {
        stream.clear(result, resultBytes);
        stream.copyToDevice(to, from, plan.pieces(0));
      }
      long pieces = plan.pieces(first);
      stream.copyToDevice(to + pieces, from + pieces, plan.pieces(end) - pieces);
      long words = (endRow - 1) / 32 - firstRow / 32 + 1;
      kernels.validity(stream, tables, to + plan.validitySections(), plan.nullable().size(), words);
      kernels.offsets(
          stream, tables, to + plan.offsetSections(), plan.strings().size(), endRow - firstRow);
      kernels.bytes(stream, tables, firstChunk, endChunk);
    };
  }

  /**
   * Returns the table, which the caller then owns. Its event ends when all copies have ended.
   *
   * @throws IllegalStateException if an announced table is missing
   */
  public DeviceTable finish() {
    Event all = enqueue();
    if (added != plan.tables().size() || finished) {
      throw new IllegalStateException(
          added + " of " + plan.tables().size() + " tables were concatenated");
    }
    finished = true;
    return DeviceTable.of(run, plan.layout(), all);
  }

  /** Frees what the caller does not own, when its uses have ended. May be called again. */
  @Override
  public void close() {
    if (!finished) {
      run.close();
    }
    here.close();
    there.close();
  }

  /**
   * The inputs of a concatenation and their places in the result, as far as layouts define them.
   * Also the form in which kernels receive them: first rows, then sections of validity and of
   * offsets, then a piece for each column of each table.
   *
   * @param tables those with rows
   * @param layout of the result
   * @param nullable columns of the result with validity
   * @param strings columns with offsets
   */
  record ConcatenationPlan(
      List<TableLayout> tables, TableLayout layout, List<Integer> nullable, List<Integer> strings) {
    static final long PIECE_BYTES = 64;
    private static final long SECTION_BYTES = 16;

    static ConcatenationPlan of(List<TableLayout> all) {
      TableLayout layout = TableConcatenator.layout(all);
      List<TableLayout> tables = all.stream().filter(table -> table.rows() > 0).toList();
      if (tables.isEmpty()) {
        throw new IllegalArgumentException("there are no rows to concatenate");
      }
      List<TableColumn> columns = layout.columns();
      return new ConcatenationPlan(
          tables,
          layout,
          IntStream.range(0, columns.size())
              .filter(c -> columns.get(c).nullable())
              .boxed()
              .toList(),
          IntStream.range(0, columns.size())
              .filter(c -> columns.get(c).kind().isString())
              .boxed()
              .toList());
    }

    int columns() {
      return layout.columns().size();
    }

    /** Where the first row of a table is written. */
    static long first(int table) {
      return 8L * table;
    }

    long validitySections() {
      return first(tables.size() + 1);
    }

    long offsetSections() {
      return validitySections() + SECTION_BYTES * nullable.size();
    }

    /** Where the pieces of a table are written. */
    long pieces(int table) {
      return offsetSections()
          + SECTION_BYTES * strings.size()
          + PIECE_BYTES * columns() * (long) table;
    }

    /** The size of all arguments. */
    long bytes() {
      return pieces(tables.size());
    }

    /** Writes everything but the pieces, which are only known with their tables. */
    void writeHead(long to, long run) {
      long row = 0;
      for (int t = 0; t < tables.size(); t++) {
        Memory.putLong(to + first(t), row);
        row += tables.get(t).rows();
      }
      Memory.putLong(to + first(tables.size()), row);
      long at = to + validitySections();
      for (int column : nullable) {
        at = writeSection(at, column, run + layout.validity(column));
      }
      for (int column : strings) {
        at = writeSection(at, column, run + layout.offsets(column));
      }
    }

    private static long writeSection(long at, int column, long section) {
      Memory.putLong(at, column);
      Memory.putLong(at + 8, section);
      return at + SECTION_BYTES;
    }
  }

  /**
   * The kernels of {@code src/main/cuda/concat.cu} on one device, with their arguments. Callers
   * must check addresses. Thread-safe; a stream is used by one thread at a time.
   */
  static final class ConcatenationKernels implements AutoCloseable {
    /** Bytes that a warp copies at a time. */
    static final long CHUNK = 4096;

    private static final int BYTES = 72;

    private final CudaModule module;
    private final CudaKernel validity;
    private final CudaKernel offsets;
    private final CudaKernel bytes;

    private ConcatenationKernels(CudaModule module) {
      this.module = module;
      this.validity = module.kernel("weft_concat_validity", BYTES);
      this.offsets = module.kernel("weft_concat_offsets", BYTES);
      this.bytes = module.kernel("weft_concat_bytes", BYTES);
    }

    static ConcatenationKernels load(CudaDevice device) {
      CudaModule module = CudaModule.load(device, "concat");
      try {
        return new ConcatenationKernels(module);
      } catch (RuntimeException e) {
        module.close();
        throw e;
      }
    }

    /**
     * Some of the tables, all with rows.
     *
     * @param run address of the result
     * @param firsts the first row of each table, then the end of the last
     * @param pieces of these tables
     * @param count the number of these tables
     * @param columns of each
     */
    record Tables(long run, long firsts, long pieces, long count, long columns) {
      private KernelArguments arguments(CudaKernel kernel, long sections, long sectionCount) {
        KernelArguments arguments = kernel.arguments().putLong(run).putLong(firsts).putLong(pieces);
        return arguments.putLong(sections).putLong(count).putLong(columns).putLong(sectionCount);
      }
    }

    /**
     * Shifts validity bits.
     *
     * @param sections of the result's columns that have validity
     * @param words that hold bits of rows of these tables
     */
    void validity(CudaStream stream, Tables tables, long sections, long count, long words) {
      KernelArguments arguments = tables.arguments(validity, sections, count).fill();
      KernelLaunches.forEach(stream, validity, count * words, arguments);
    }

    /**
     * Adjusts offsets to the result.
     *
     * @param sections of the columns that have offsets
     * @param rows of these tables
     */
    void offsets(CudaStream stream, Tables tables, long sections, long count, long rows) {
      KernelArguments arguments = tables.arguments(offsets, sections, count).fill();
      KernelLaunches.forEach(stream, offsets, count * (rows + 1), arguments);
    }

    /** Copies values and the bytes of strings. */
    void bytes(CudaStream stream, Tables tables, long firstChunk, long endChunk) {
      KernelArguments arguments =
          tables.arguments(bytes, 0, 0).putLong(firstChunk).putLong(endChunk);
      KernelLaunches.forEach(
          stream, bytes, (endChunk - firstChunk) * KernelLaunches.WARP, arguments);
    }

    /** Keeps the kernels loaded until the event has ended, even if this is closed earlier. */
    void usedUntil(Event event) {
      module.usedUntil(event);
    }

    /** Closes the kernels; none is launched any more. */
    @Override
    public void close() {
      module.close();
    }
  }
}
