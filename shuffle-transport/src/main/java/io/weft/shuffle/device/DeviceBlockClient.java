package io.weft.shuffle.device;

import io.weft.collectives.DataType;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.device.EventTimeoutException;
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
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.LongStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches device blocks of other executors to this executor's device. Requests to one executor run
 * in order, and those to different executors side by side. Thread-safe; callers wait.
 */
public final class DeviceBlockClient implements AutoCloseable {
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
    return start(executor, blocks).await(wanted);
  }

  /**
   * Starts to fetch blocks of one executor, all at once. Does not wait. Fetches of another executor
   * arrive in the order of their starts, whether or not they are awaited.
   *
   * @return the caller awaits or closes it
   */
  public BlockFetch start(String executor, List<DeviceBlock> blocks) {
    return new BlockFetch(executor, blocks);
  }

  /** Blocks of one executor; those of another one are on their way. For one thread. */
  public final class BlockFetch implements AutoCloseable {
    private final String executor;
    private final List<DeviceBlock> blocks;
    private final AtomicReference<PendingFetch> pending = new AtomicReference<>();
    private final AtomicBoolean givenUp = new AtomicBoolean();
    private final Event posted;

    private BlockFetch(String executor, List<DeviceBlock> blocks) {
      this.executor = executor;
      this.blocks = List.copyOf(blocks);
      this.posted =
          lanes.submit(
              executor,
              "a request to executor " + executor + " for blocks of its GPU",
              () -> {
                if (!givenUp.get() && !isOwn()) {
                  pending.set(request(executor, this.blocks));
                }
              });
    }

    private boolean isOwn() {
      return executor.equals(own.executor());
    }

    /** The bytes that it receives; 0 while that is unknown. */
    public long bytes() {
      PendingFetch known = pending.get();
      return known == null
          ? 0
          : known.rows().stream()
              .flatMap(List::stream)
              .mapToLong(each -> each.layout().bytes())
              .sum();
    }

    /**
     * Waits for all blocks; see {@link DeviceBlockClient#fetch}. Ends the fetch if it fails. Call
     * it once.
     */
    public List<List<DeviceRows>> await(Runnable wanted) throws DeviceFetchException {
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

    /** Ends a fetch that was not awaited: withdraws its arrays and frees those that have come. */
    @Override
    public void close() {
      givenUp.set(true);
      closeLater(posted, pending);
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
          client.await(arrival.event(), wanted);
        } catch (EventFailedException | EventTimeoutException e) {
          throw client.failure(executor, arrival.block(), e);
        }
      }
    }

    void close() {
      rows.forEach(each -> each.forEach(DeviceRows::close));
    }
  }

  private record Arrival(DeviceBlock block, Event event) {}

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
        arrivals.add(new Arrival(blocks.get(i), buffer.event()));
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
    Deadline deadline = Deadline.after(timeout);
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

  /** Withdraws arrays that were requested before the reader gave up. */
  private static void closeLater(Event posted, AtomicReference<PendingFetch> pending) {
    posted.whenDone(
        cause -> {
          PendingFetch late = pending.get();
          if (late != null) {
            late.close();
          }
        });
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
