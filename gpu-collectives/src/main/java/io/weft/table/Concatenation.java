package io.weft.table;

import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaLane;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import io.weft.table.ConcatKernels.Tables;
import java.util.ArrayList;
import java.util.List;

/**
 * A concatenation in progress. The memory for the result exists from the beginning. The tables
 * arrive one after the other, so they need not be on the device together. For one thread.
 */
public final class Concatenation implements AutoCloseable {
  private final CudaLane lane;
  private final ConcatKernels kernels;
  private final ConcatPlan plan;
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
      ConcatKernels kernels,
      ConcatPlan plan,
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
      writePiece(at + c * ConcatPlan.PIECE_BYTES, table, c);
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
    chunks += (bytes + ConcatKernels.CHUNK - 1) / ConcatKernels.CHUNK;
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
    long firstRow = Memory.getLong(here.address() + ConcatPlan.first(first));
    long endRow = Memory.getLong(here.address() + ConcatPlan.first(end));
    long result = run.address();
    long resultBytes = run.bytes();
    long from = here.address();
    long to = there.address();
    Tables tables =
        new Tables(
            result,
            to + ConcatPlan.first(first),
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
}
