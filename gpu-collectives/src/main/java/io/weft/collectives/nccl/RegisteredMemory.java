package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemorySource;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Device memory of NCCL for arrays that processes send and receive. The first group of a
 * communicator that touches a segment registers the whole segment with it, so NCCL can move later
 * arrays there without its own buffers. A registration is of one process only, so the ranks need
 * not agree. It ends with its communicator, or before its segment is freed.
 *
 * <p>Thread-safe.
 */
public final class RegisteredMemory implements CudaMemorySource {
  private static final Logger LOG = LoggerFactory.getLogger(RegisteredMemory.class);

  private final NcclMemory source;
  private final TreeMap<Long, Segment> segments = new TreeMap<>();
  private final Set<Segment> awaited = new HashSet<>();
  private long registrations;
  private long freshBytes;

  /** A segment, and the communicators that have registered it. Guarded by its memory's monitor. */
  static final class Segment {
    private final CudaDevice device;
    private final long address;
    private final long bytes;
    private final Set<SegmentRegistrations> users = new HashSet<>();

    /** Runs when the segment is freed; set when its pool gives it up. */
    private Runnable freed = () -> {};

    Segment(CudaDevice device, long address, long bytes) {
      this.device = device;
      this.address = address;
      this.bytes = bytes;
    }

    long address() {
      return address;
    }

    long bytes() {
      return bytes;
    }

    @Override
    public String toString() {
      return Bytes.text(bytes) + " of NCCL's memory of " + device;
    }
  }

  /** Loads NCCL if it is not loaded. */
  public RegisteredMemory(ProbeOptions libraries) {
    this.source = new NcclMemory(libraries);
  }

  @Override
  public String what() {
    return source.what();
  }

  @Override
  public long granularity() {
    return source.granularity();
  }

  @Override
  public long allocate(CudaDevice device, long bytes) {
    long address = source.allocate(device, bytes);
    synchronized (this) {
      segments.put(address, new Segment(device, address, bytes));
      freshBytes += bytes;
    }
    return address;
  }

  @Override
  public void free(CudaDevice device, long address, long bytes) {
    free(device, address, bytes, () -> {});
  }

  /** Frees a segment, at once or when the last communicator has ended its registration. */
  @Override
  public void free(CudaDevice device, long address, long bytes, Runnable freed) {
    Segment segment;
    List<SegmentRegistrations> users;
    synchronized (this) {
      segment = segments.remove(address);
      segment.freed = freed;
      users = List.copyOf(segment.users);
      if (!users.isEmpty()) {
        awaited.add(segment);
      }
    }
    if (users.isEmpty()) {
      source.free(device, address, bytes, freed);
    }
    users.forEach(user -> user.end(segment));
  }

  /** The segments around these addresses. Other addresses are ignored. */
  synchronized Set<Segment> around(Collection<Long> addresses) {
    Set<Segment> found = new LinkedHashSet<>();
    for (long address : addresses) {
      Map.Entry<Long, Segment> before = segments.floorEntry(address);
      if (before != null && address < before.getKey() + before.getValue().bytes) {
        found.add(before.getValue());
      }
    }
    return found;
  }

  /**
   * Adds a communicator that uses a segment, in which a buffer is in use.
   *
   * @param accepted whether NCCL has registered it
   */
  synchronized void registered(Segment segment, SegmentRegistrations user, boolean accepted) {
    segment.users.add(user);
    registrations += accepted ? 1 : 0;
  }

  /** Removes a communicator whose registration has ended. */
  void ended(Segment segment, SegmentRegistrations user) {
    synchronized (this) {
      if (!segment.users.remove(user) || !segment.users.isEmpty() || !awaited.remove(segment)) {
        return;
      }
    }
    try {
      source.free(segment.device, segment.address, segment.bytes, segment.freed);
    } catch (RuntimeException e) {
      LOG.warn("{} is left to the driver", segment, e);
    }
  }

  /** Registrations so far, each of a segment with a communicator. */
  public synchronized long registrations() {
    return registrations;
  }

  /** Bytes allocated so far. */
  public synchronized long freshBytes() {
    return freshBytes;
  }

  /** Whether freed segments still wait for communicators. */
  public synchronized boolean hasAwaited() {
    return !awaited.isEmpty();
  }
}
