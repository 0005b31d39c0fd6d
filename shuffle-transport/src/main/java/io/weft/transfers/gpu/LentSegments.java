package io.weft.transfers.gpu;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.IpcHandle;
import io.weft.device.cuda.IpcMemory;
import io.weft.device.cuda.IpcSegment;
import io.weft.transfers.TransferWire;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Segments of memory pools that the two ends of a wire lend each other, so that arrays there are
 * copied once: by the receiver, out of the sender's memory. A segment is mapped when an array in it
 * is first sent, and stays mapped until its pool wants it back, which ends an idle wire, or the
 * wire ends.
 *
 * <p>The messages of a move, each end to the other:
 *
 * <pre>
 * long fresh segments | long returned segments | for each array: long segment or -1, long offset
 * if one end has fresh or returned segments:
 *   for each fresh segment: long id, long address, handle | for each returned segment: long id
 *   for each fresh segment of the other end: byte, 1 if it is mapped | byte 1
 * </pre>
 *
 * <p>Used by one thread at a time.
 */
final class LentSegments {
  private static final Logger LOG = LoggerFactory.getLogger(LentSegments.class);

  /** The most segments that an end lends at a time. Arrays in others are copied twice. */
  private static final int MAX_SEGMENTS = 1024;

  private static final long NONE = -1;
  private static final int HEAD_BYTES = 2 * Long.BYTES;
  private static final int ENTRY_BYTES = 2 * Long.BYTES;
  private static final int FRESH_BYTES = 2 * Long.BYTES + IpcHandle.ENCODED_BYTES;

  private final CudaDevice device;

  /** The segments of this end, by their addresses. */
  private final TreeMap<Long, Lent> lent = new TreeMap<>();

  /** The segments of the other end, by their ids. */
  private final Map<Long, Mapped> mapped = new HashMap<>();

  private long nextId;

  /** Whether this end has refused a segment; the other end still keeps it for this one. */
  private boolean refused;

  private ByteBuffer mine = block(1 << 10);
  private ByteBuffer theirs = block(1 << 10);

  /**
   * A segment of this end. The other end has not mapped it if it was refused; its lease stays open,
   * because an address without a lease may become that of another segment.
   */
  private static final class Lent {
    private final long id;
    private final IpcSegment segment;
    private boolean refused;

    Lent(long id, IpcSegment segment) {
      this.id = id;
      this.segment = segment;
    }
  }

  /**
   * A segment of the other end.
   *
   * @param address in this process
   * @param held keeps it mapped; empty if it is of this process
   */
  private record Mapped(long address, long bytes, Optional<IpcMemory> held) {
    /** The address of an array in the segment. */
    long at(long offset, long length) {
      if (offset < 0 || length > bytes - offset) {
        throw new CollectiveException(
            Kind.MISMATCH,
            List.of(),
            "the other end sends %d bytes at %d of a segment of %d"
                .formatted(length, offset, bytes));
      }
      return address + offset;
    }
  }

  /**
   * The arrays of this end in a move.
   *
   * @param segments of the arrays; null for arrays in other memory
   */
  record Lending(
      List<TypedBuffer> sends, List<Lent> segments, List<Lent> fresh, List<Lent> returned) {
    /** Whether the other end may read an array in place. */
    boolean lends() {
      return segments.stream().anyMatch(each -> each != null);
    }
  }

  /**
   * What both ends have agreed on.
   *
   * @param sends arrays that this end copies into its room
   * @param receives arrays that come through the other end's room
   */
  record Agreed(List<Copy> copies, List<TypedBuffer> sends, List<TypedBuffer> receives) {}

  /** A copy out of the other end's memory. */
  record Copy(TypedBuffer to, long from) {}

  /** Lends nothing yet. */
  LentSegments(CudaDevice device) {
    this.device = device;
  }

  private static ByteBuffer block(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder());
  }

  /** Finds or leases the segments of arrays, which stay in use during the move. */
  Lending lend(List<TypedBuffer> sends) {
    List<Lent> segments = new ArrayList<>(sends.size());
    List<Lent> fresh = new ArrayList<>();
    for (TypedBuffer array : sends) {
      segments.add(array.bytes() == 0 ? null : around(array, fresh));
    }
    List<Lent> returned =
        lent.values().stream()
            .filter(each -> each.segment.isWantedBack() && !segments.contains(each))
            .toList();
    return new Lending(sends, segments, fresh, returned);
  }

  private Lent around(TypedBuffer array, List<Lent> fresh) {
    Map.Entry<Long, Lent> before = lent.floorEntry(array.address());
    if (before != null && before.getValue().segment.covers(array.address(), array.bytes())) {
      return before.getValue().refused ? null : before.getValue();
    }
    if (lent.size() == MAX_SEGMENTS) {
      return null;
    }
    Optional<IpcSegment> leased = IpcSegment.around(array.address(), array.bytes());
    if (leased.isEmpty()) {
      return null;
    }
    Lent made = new Lent(nextId++, leased.get());
    lent.put(leased.get().address(), made);
    fresh.add(made);
    return made;
  }

  /** Exchanges the messages of a move. The device is idle at both ends. */
  Agreed agree(TransferWire host, Lending lending, List<TypedBuffer> receives) {
    writeEntries(lending);
    theirs = sized(theirs, HEAD_BYTES + ENTRY_BYTES * receives.size());
    swap(host);
    long fresh = count(theirs.getLong());
    long returned = count(theirs.getLong());
    long[] entries = new long[2 * receives.size()];
    theirs.asLongBuffer().get(entries);
    if (fresh + returned + lending.fresh.size() + lending.returned.size() > 0) {
      exchangeSegments(host, lending, (int) fresh, (int) returned);
    }
    return agreed(lending, receives, entries);
  }

  private static long count(long sent) {
    if (sent < 0 || sent > MAX_SEGMENTS) {
      throw new CollectiveException(
          Kind.MISMATCH, List.of(), "the other end's message names " + sent + " segments");
    }
    return sent;
  }

  private void writeEntries(Lending lending) {
    mine = sized(mine, HEAD_BYTES + ENTRY_BYTES * lending.sends.size());
    mine.putLong(lending.fresh.size()).putLong(lending.returned.size());
    for (int i = 0; i < lending.sends.size(); i++) {
      Lent segment = lending.segments.get(i);
      long offset =
          segment == null ? 0 : lending.sends.get(i).address() - segment.segment.address();
      mine.putLong(segment == null ? NONE : segment.id).putLong(offset);
    }
  }

  /** An empty block of that size. */
  private static ByteBuffer sized(ByteBuffer old, int bytes) {
    ByteBuffer sized = bytes > old.capacity() ? block(Math.max(bytes, 2 * old.capacity())) : old;
    return sized.clear().limit(bytes);
  }

  private void swap(TransferWire host) {
    mine.rewind();
    theirs.rewind();
    host.move(
        List.of(TypedBuffer.wrap(mine, DataType.INT8)),
        List.of(TypedBuffer.wrap(theirs, DataType.INT8)));
  }

  private void exchangeSegments(TransferWire host, Lending lending, int fresh, int returned) {
    int own = lending.fresh.size();
    mine = sized(mine, FRESH_BYTES * own + Long.BYTES * lending.returned.size() + 1);
    for (Lent each : lending.fresh) {
      mine.putLong(each.id).putLong(each.segment.address());
      mine.put(each.segment.handle().encode());
    }
    lending.returned.forEach(each -> mine.putLong(each.id));
    theirs = sized(theirs, FRESH_BYTES * fresh + Long.BYTES * returned + 1);
    swap(host);
    byte[] answers = new byte[fresh + 1];
    for (int i = 0; i < fresh; i++) {
      answers[i] = (byte) (map() ? 1 : 0);
    }
    for (int i = 0; i < returned; i++) {
      unmap(mapped.remove(theirs.getLong()));
    }
    mine = sized(mine, fresh + 1).put(answers);
    theirs = sized(theirs, own + 1);
    swap(host);
    for (Lent each : lending.fresh) {
      each.refused = theirs.get() == 0;
    }
    for (Lent each : lending.returned) {
      lent.remove(each.segment.address());
      each.segment.close();
    }
  }

  /** Maps the next segment of the other end's message; false if this end cannot. */
  private boolean map() {
    long id = theirs.getLong();
    long address = theirs.getLong();
    byte[] encoded = new byte[IpcHandle.ENCODED_BYTES];
    theirs.get(encoded);
    IpcHandle handle = IpcHandle.decode(encoded);
    try {
      mapped.put(id, map(address, handle));
      return true;
    } catch (CudaException | IllegalArgumentException e) {
      if (!refused) {
        LOG.info("Arrays in {} are copied twice: {}", handle, e.getMessage());
      }
      refused = true;
      return false;
    }
  }

  private Mapped map(long address, IpcHandle handle) {
    if (handle.pid() == ProcessHandle.current().pid()) {
      return new Mapped(address, handle.bytes(), Optional.empty());
    }
    IpcMemory memory = IpcMemory.open(device, handle);
    return new Mapped(memory.address(), memory.bytes(), Optional.of(memory));
  }

  private static void unmap(Mapped segment) {
    if (segment != null) {
      segment.held.ifPresent(IpcMemory::close);
    }
  }

  private Agreed agreed(Lending lending, List<TypedBuffer> receives, long[] entries) {
    List<TypedBuffer> sends = new ArrayList<>();
    for (int i = 0; i < lending.sends.size(); i++) {
      Lent segment = lending.segments.get(i);
      if (segment == null || segment.refused) {
        sends.add(lending.sends.get(i));
      }
    }
    List<Copy> copies = new ArrayList<>();
    List<TypedBuffer> others = new ArrayList<>();
    for (int i = 0; i < receives.size(); i++) {
      TypedBuffer array = receives.get(i);
      Mapped segment = mapped.get(entries[2 * i]);
      if (segment == null) {
        others.add(array);
      } else {
        copies.add(new Copy(array, segment.at(entries[2 * i + 1], array.bytes())));
      }
    }
    return new Agreed(copies, sends, others);
  }

  /** Whether a pool of this end wants a lent segment back. */
  boolean isWantedBack() {
    return lent.values().stream().anyMatch(each -> each.segment.isWantedBack());
  }

  /** Whether the other end has lent this one a segment. */
  boolean areTheirs() {
    return refused || !mapped.isEmpty();
  }

  /** Unmaps the other end's segments. The stream that reads them is idle. */
  void unmapAll() {
    mapped.values().forEach(LentSegments::unmap);
    mapped.clear();
  }

  /** Ends the loans. The other end has unmapped the segments, or its process has ended. */
  void endLoans() {
    lent.values().forEach(each -> each.segment.close());
    lent.clear();
  }
}
