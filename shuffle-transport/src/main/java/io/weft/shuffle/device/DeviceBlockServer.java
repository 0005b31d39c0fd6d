package io.weft.shuffle.device;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.cuda.TieredLease;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.SourceBuffer;
import io.weft.transfers.TransferBuffer;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Answers requests of readers on other executors' GPUs. Thread-safe. */
public final class DeviceBlockServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DeviceBlockServer.class);
  private static final int THREADS = 4;

  private final DeviceCatalog catalog;
  private final DeviceTransfers transfers;
  private final DeviceId own;
  private final Duration timeout;
  private final Map<Long, Ticket> tickets = new ConcurrentHashMap<>();
  private final ScheduledThreadPoolExecutor threads;

  /**
   * Blocks that stay on the device until a reader has them or the ticket expires. A transfer keeps
   * its block longer: until its wire no longer reads it, which may be after its event has failed.
   */
  private record Ticket(List<TransferBuffer> leased, List<TypedBuffer> arrays, Deadline deadline) {
    void close() {
      leased.forEach(TransferBuffer::close);
    }
  }

  /**
   * Starts to serve.
   *
   * @param transfers of this executor; the caller closes them afterwards
   * @param own this executor's GPU in the transfers
   * @param timeout how long blocks are kept ready for a reader
   */
  public DeviceBlockServer(
      DeviceCatalog catalog, DeviceTransfers transfers, DeviceId own, Duration timeout) {
    this.catalog = catalog;
    this.transfers = transfers;
    this.own = own;
    this.timeout = timeout;
    AtomicInteger number = new AtomicInteger();
    this.threads =
        new ScheduledThreadPoolExecutor(
            THREADS,
            task -> {
              Thread thread = new Thread(task, "weft-device-blocks-" + number.incrementAndGet());
              thread.setDaemon(true);
              return thread;
            });
    long millis = Math.max(1, timeout.toMillis());
    ScheduledFuture<?> unused =
        threads.scheduleWithFixedDelay(this::expire, millis, millis, TimeUnit.MILLISECONDS);
  }

  /** Answers a request. Does not block. */
  public CompletableFuture<byte[]> answer(byte[] request) {
    try {
      return CompletableFuture.supplyAsync(() -> answerNow(request), threads);
    } catch (RejectedExecutionException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private byte[] answerNow(byte[] request) {
    try (DataInputStream in = DeviceBlockMessages.read(request)) {
      byte kind = in.readByte();
      switch (kind) {
        case DeviceBlockMessages.PREPARE -> {
          return prepare(DeviceBlockMessages.readBlocks(in));
        }
        case DeviceBlockMessages.SEND -> send(in.readLong(), in.readUTF(), in.readLong());
        case DeviceBlockMessages.DROP -> drop(in.readLong());
        default -> throw new IOException("unknown request " + kind + " about blocks of a GPU");
      }
      return new byte[0];
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private byte[] prepare(List<DeviceBlock> blocks) {
    List<List<TableLayout>> tables = new ArrayList<>();
    List<TransferBuffer> leased = new ArrayList<>();
    List<TypedBuffer> arrays = new ArrayList<>();
    try {
      for (int i = 0; i < blocks.size(); i++) {
        Optional<DeviceOutput> output = catalog.find(blocks.get(i).key());
        if (output.isEmpty()) {
          leased.forEach(TransferBuffer::close);
          return DeviceBlockMessages.missing(i);
        }
        List<DeviceOutput.Slice> slices = output.get().slices(blocks.get(i).partition());
        for (DeviceOutput.Slice slice : slices) {
          TieredLease lease = slice.memory().lease();
          long bytes = slice.layout().bytes();
          TransferBuffer block =
              new TransferBuffer(lease.address() + slice.offset(), bytes, lease::close);
          leased.add(block);
          arrays.add(TypedBuffer.of(block, 0, DataType.INT8, bytes));
        }
        tables.add(slices.stream().map(DeviceOutput.Slice::layout).toList());
      }
    } catch (RuntimeException e) {
      leased.forEach(TransferBuffer::close);
      throw e;
    }
    long ticket = ThreadLocalRandom.current().nextLong();
    tickets.put(ticket, new Ticket(leased, arrays, Deadline.after(timeout)));
    return DeviceBlockMessages.ready(new DeviceBlockMessages.Ready(ticket, tables));
  }

  private void send(long number, String executor, long firstKey) {
    Ticket ticket = tickets.remove(number);
    if (ticket == null) {
      throw new IllegalStateException("the blocks are not kept ready any more, after " + timeout);
    }
    try {
      List<SourceBuffer> sources =
          ticket.arrays().stream().map(array -> SourceBuffer.of(own, array)).toList();
      long[] keys = DeviceBlockClient.keys(firstKey, sources.size());
      DeviceId there = new DeviceId(executor, own.ordinal());
      List<Event> unused =
          transfers.send(sources, Collections.nCopies(sources.size(), there), keys);
    } finally {
      ticket.close();
    }
  }

  private void drop(long number) {
    Ticket ticket = tickets.remove(number);
    if (ticket != null) {
      ticket.close();
    }
  }

  private void expire() {
    tickets.forEach(
        (number, ticket) -> {
          if (ticket.deadline().expired() && tickets.remove(number, ticket)) {
            LOG.warn("A reader did not fetch {} blocks of {} in time", ticket.arrays().size(), own);
            ticket.close();
          }
        });
  }

  /** Ends the threads and releases all blocks. */
  @Override
  public void close() {
    threads.shutdownNow();
    try {
      if (!threads.awaitTermination(timeout.toMillis(), TimeUnit.MILLISECONDS)) {
        LOG.warn("A request about blocks of {} is still being answered", own);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    tickets.keySet().forEach(this::drop);
  }
}
