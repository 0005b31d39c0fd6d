package io.weft.shuffle.device;

import io.weft.collectives.DataType;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
import io.weft.device.HostEvent;
import io.weft.device.cuda.TieredLease;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.transfers.BufferShape;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.ReceivedBuffer;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.LongStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches device blocks of other executors to this executor's device. Requests to one executor run
 * in order, and those to different executors side by side. Thread-safe; callers wait.
 */
public final class DeviceBlockClient implements BlockFetches, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceBlockClient.class);
  private static final long CHECK_NANOS = 100_000_000;

  /** Executors that may leave requests unanswered without delaying requests to others. */
  private static final int THREADS = 32;

  private final DeviceCatalog catalog;
  private final Requests requests;
  private final DeviceTransfers transfers;
  private final DeviceId own;
  private final Duration timeout;
  private final PeerLanes lanes;

  /** The groups that are ahead. */
  private final Set<Group> ahead = ConcurrentHashMap.newKeySet();

  /** Sends requests to the servers of other executors. */
  @FunctionalInterface
  public interface Requests {
    /**
     * Sends a request and waits for the answer.
     *
     * @throws IOException if no answer comes; the message names the executor
     * @throws InterruptedException if the thread is interrupted
     */
    byte[] send(String executor, byte[] request) throws IOException, InterruptedException;
  }

  /**
   * Creates a client with its own lanes.
   *
   * @param catalog of this executor
   * @param transfers of this executor; the caller closes them afterwards
   * @param own this executor's GPU in the transfers
   * @param timeout the longest wait of a request for its turn and for its arrays
   */
  public DeviceBlockClient(
      DeviceCatalog catalog,
      Requests requests,
      DeviceTransfers transfers,
      DeviceId own,
      Duration timeout) {
    this.catalog = catalog;
    this.requests = requests;
    this.transfers = transfers;
    this.own = own;
    this.timeout = timeout;
    this.lanes = new PeerLanes(THREADS, timeout);
  }

  /** Consecutive keys for the arrays of {@code count} tables. */
  static long[] keys(long first, int count) {
    return LongStream.range(0, count).map(i -> first + i).toArray();
  }

  /**
   * Fetches blocks of one executor, all at once. Blocks of this executor are read in place.
   *
   * @param wanted is called periodically during the wait, and throws if the blocks are not needed
   *     any more
   * @return the tables of each block, in their order; the caller closes each of them
   * @throws DeviceFetchException naming the first block that failed; then no table stays open
   */
  public List<List<DeviceRows>> fetch(String executor, List<DeviceBlock> blocks, Runnable wanted)
      throws DeviceFetchException {
    return start(executor, blocks, false).await(wanted);
  }

  @Override
  public BlockFetch start(String executor, List<DeviceBlock> blocks, boolean isAhead) {
    Group made = new Group(executor, blocks, isAhead ? GroupState.AHEAD : GroupState.CLAIMED);
    if (isAhead) {
      ahead.add(made);
    }
    return made;
  }

  @Override
  public boolean makeRoom(Runnable wanted) {
    List<Group> dropped = ahead.stream().filter(Group::drop).toList();
    Deadline deadline = Deadline.after(FREE_TIMEOUT);
    dropped.forEach(group -> group.awaitFree(deadline, wanted));
    return !dropped.isEmpty();
  }

  private enum GroupState {
    AHEAD,
    CLAIMED,
    ENDED
  }

  private final class Group implements BlockFetch {
    private final String executor;
    private final List<DeviceBlock> blocks;
    private final AtomicReference<PendingFetch> pending = new AtomicReference<>();
    private final AtomicReference<GroupState> state;
    private final HostEvent free;
    private final Event posted;

    Group(String executor, List<DeviceBlock> blocks, GroupState state) {
      this.executor = executor;
      this.blocks = List.copyOf(blocks);
      this.state = new AtomicReference<>(state);
      this.free = new HostEvent("the end of a fetch from executor " + executor);
      this.posted =
          lanes.submit(
              executor,
              "a request to executor " + executor + " for blocks of its GPU",
              () -> {
                if (this.state.get() != GroupState.ENDED && !isOwn()) {
                  pending.set(request(executor, this.blocks));
                }
              });
    }

    private boolean isOwn() {
      return executor.equals(own.executor());
    }

    @Override
    public long bytes() {
      PendingFetch known = pending.get();
      return known == null
          ? 0
          : known.rows().stream()
              .flatMap(List::stream)
              .mapToLong(each -> each.layout().bytes())
              .sum();
    }

    @Override
    public boolean claim() {
      boolean claimed = state.compareAndSet(GroupState.AHEAD, GroupState.CLAIMED);
      ahead.remove(this);
      return claimed || state.get() == GroupState.CLAIMED;
    }

    /** Ends it if it is ahead. Returns whether it was. */
    boolean drop() {
      if (!state.compareAndSet(GroupState.AHEAD, GroupState.ENDED)) {
        return false;
      }
      close();
      return true;
    }

    @Override
    public List<List<DeviceRows>> await(Runnable wanted) throws DeviceFetchException {
      if (!claim()) {
        throw new IllegalStateException("a fetch from executor " + executor + " was dropped");
      }
      try {
        DeviceBlockClient.this.await(posted, wanted);
        if (isOwn()) {
          return inPlace(blocks);
        }
        pending.get().await(DeviceBlockClient.this, wanted);
        return pending.get().rows();
      } catch (EventFailedException | EventTimeoutException e) {
        close();
        throw failure(executor, blocks.get(0), e);
      } catch (RuntimeException | DeviceFetchException e) {
        close();
        throw e;
      }
    }

    @Override
    public void awaitFree(Deadline deadline, Runnable wanted) {
      try {
        DeviceBlockClient.await(free, deadline, wanted);
      } catch (EventTimeoutException e) {
        LOG.info("Blocks of executor {} that were given up: {}", executor, e.getMessage());
      }
    }

    /** Withdraws arrays also if they are requested only after the reader has given up. */
    @Override
    public void close() {
      state.set(GroupState.ENDED);
      ahead.remove(this);
      posted.whenDone(
          cause -> {
            PendingFetch late = pending.get();
            if (late == null) {
              free.complete();
            } else {
              late.close(free);
            }
          });
    }
  }

  private List<List<DeviceRows>> inPlace(List<DeviceBlock> blocks) throws DeviceFetchException {
    List<List<DeviceRows>> all = new ArrayList<>();
    try {
      for (DeviceBlock block : blocks) {
        List<DeviceRows> rows = new ArrayList<>();
        all.add(rows);
        Optional<DeviceOutput> output = catalog.find(block.key());
        if (output.isEmpty()) {
          throw new DeviceFetchException(
              block, block + " is not on the GPU of this executor, " + own.executor(), null);
        }
        for (DeviceOutput.Slice slice : output.get().slices(block.partition())) {
          TieredLease lease = slice.memory().lease();
          rows.add(DeviceRows.inPlace(slice, lease));
        }
      }
      return all;
    } catch (RuntimeException | DeviceFetchException e) {
      all.forEach(rows -> rows.forEach(DeviceRows::close));
      throw e;
    }
  }

  /** Arrays that are being received. */
  private record PendingFetch(
      String executor, List<DeviceBlock> blocks, List<List<DeviceRows>> rows, List<Arrival> all) {
    void await(DeviceBlockClient client, Runnable wanted) throws DeviceFetchException {
      for (Arrival arrival : all) {
        try {
          client.await(arrival.buffer().event(), wanted);
        } catch (EventFailedException | EventTimeoutException e) {
          throw client.failure(executor, arrival.block(), e);
        }
      }
    }

    /** Frees the arrays that have come, and the others when their transfers have ended. */
    void close(HostEvent free) {
      rows.forEach(each -> each.forEach(DeviceRows::close));
      AtomicInteger left = new AtomicInteger(all.size() + 1);
      Runnable ended =
          () -> {
            if (left.decrementAndGet() == 0) {
              free.complete();
            }
          };
      all.forEach(arrival -> arrival.buffer().memory().whenReturned(ended));
      ended.run();
    }
  }

  private record Arrival(DeviceBlock block, ReceivedBuffer buffer) {}

  /** Runs on the executor's lane, because transfers between two devices match by order. */
  private PendingFetch request(String executor, List<DeviceBlock> blocks)
      throws IOException, InterruptedException {
    DeviceBlockMessages.Ready ready =
        DeviceBlockMessages.readReady(
            requests.send(executor, DeviceBlockMessages.prepare(blocks)), blocks, executor);
    List<TableLayout> tables = ready.tables().stream().flatMap(List::stream).toList();
    long firstKey = ThreadLocalRandom.current().nextLong();
    List<ReceivedBuffer> received = receive(executor, ready.ticket(), tables, firstKey);
    try {
      byte[] unused =
          requests.send(
              executor,
              DeviceBlockMessages.message(
                  out -> {
                    out.writeByte(DeviceBlockMessages.SEND);
                    out.writeLong(ready.ticket());
                    out.writeUTF(own.executor());
                    out.writeLong(firstKey);
                  }));
    } catch (IOException | InterruptedException | RuntimeException e) {
      received.forEach(ReceivedBuffer::close);
      throw e;
    }
    List<List<DeviceRows>> rows = new ArrayList<>();
    List<Arrival> arrivals = new ArrayList<>();
    for (int i = 0; i < blocks.size(); i++) {
      List<DeviceRows> ofBlock = new ArrayList<>();
      for (TableLayout table : ready.tables().get(i)) {
        ReceivedBuffer buffer = received.get(arrivals.size());
        ofBlock.add(DeviceRows.received(table, buffer));
        arrivals.add(new Arrival(blocks.get(i), buffer));
      }
      rows.add(ofBlock);
    }
    return new PendingFetch(executor, blocks, rows, arrivals);
  }

  private List<ReceivedBuffer> receive(
      String executor, long ticket, List<TableLayout> tables, long firstKey)
      throws IOException, InterruptedException {
    List<BufferShape> shapes =
        tables.stream().map(table -> BufferShape.of(DataType.INT8, table.bytes())).toList();
    DeviceId there = new DeviceId(executor, own.ordinal());
    try {
      return shapes.isEmpty()
          ? List.of()
          : transfers.receive(
              own,
              shapes,
              Collections.nCopies(shapes.size(), there),
              keys(firstKey, shapes.size()));
    } catch (RuntimeException e) {
      byte[] unused =
          requests.send(
              executor,
              DeviceBlockMessages.message(
                  out -> {
                    out.writeByte(DeviceBlockMessages.DROP);
                    out.writeLong(ticket);
                  }));
      throw e;
    }
  }

  private void await(Event event, Runnable wanted) {
    await(event, Deadline.after(timeout), wanted);
  }

  private static void await(Event event, Deadline deadline, Runnable wanted) {
    while (true) {
      wanted.run();
      try {
        event.await(Deadline.afterNanos(Math.min(CHECK_NANOS, deadline.remainingNanos())));
        return;
      } catch (EventTimeoutException e) {
        if (deadline.expired() || Thread.currentThread().isInterrupted()) {
          throw e;
        }
      }
    }
  }

  private DeviceFetchException failure(String executor, DeviceBlock block, RuntimeException e) {
    Throwable cause = e instanceof EventFailedException && e.getCause() != null ? e.getCause() : e;
    if (cause instanceof DeviceFetchException named) {
      return named;
    }
    String message =
        "%s did not come from the GPU of executor %s to that of executor %s: %s"
            .formatted(block, executor, own.executor(), cause.getMessage());
    LOG.warn(message);
    return new DeviceFetchException(block, message, cause);
  }

  /** Refuses new requests and ends those under way. */
  @Override
  public void close() {
    lanes.close();
  }
}
