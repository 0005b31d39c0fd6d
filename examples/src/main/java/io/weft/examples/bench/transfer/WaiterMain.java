package io.weft.examples.bench.transfer;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.UniqueId;
import io.weft.collectives.bootstrap.FileBootstrap;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.Deadline;
import io.weft.device.Device;
import io.weft.device.Event;
import io.weft.device.EventFailedException;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.transfers.BufferShape;
import io.weft.transfers.DeviceId;
import io.weft.transfers.DeviceTransfers;
import io.weft.transfers.DeviceTransfers.TransferMembership;
import io.weft.transfers.ReceivedBuffer;
import io.weft.transfers.SourceBuffer;
import io.weft.transfers.TransferCounter;
import io.weft.transfers.TransferOptions;
import io.weft.transfers.TransferWire.CommunicatorWire;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;

/**
 * The main class of one of two executors that transfer arrays. It writes {@code ready} and executes
 * two orders: {@code exchange} moves one array from executor 0 to 1; {@code wait N} waits for N
 * arrays that never arrive. For the latter it writes {@code ready} when the peer knows of the
 * requests, and {@code done} when all have failed.
 */
public final class WaiterMain {
  private static final long MIB = 1L << 20;
  private static final int ELEMENTS = 1024;
  private static final Duration TIMEOUT = Duration.ofMinutes(1);
  private static final long POLL_NANOS = 1_000_000;

  private final int executor;
  private final DeviceTransfers transfers;

  private WaiterMain(int executor, DeviceTransfers transfers) {
    this.executor = executor;
    this.transfers = transfers;
  }

  /**
   * Starts an executor.
   *
   * @param arguments a shared folder, the host of this executor, its number, the deadline of
   *     transfers in milliseconds, and ids of the rendezvous with the other executor
   */
  public static void main(String[] arguments) throws IOException {
    Path folder = Path.of(arguments[0]);
    int executor = Integer.parseInt(arguments[2]);
    Iterator<String> rendezvous = List.of(arguments).subList(4, arguments.length).iterator();
    Path home = Files.createDirectories(folder.resolve("arena-" + executor));
    ArenaOptions arenaOptions = new ArenaOptions(home, List.of(), 4 * MIB, 64 * MIB, 0, 0);
    try (SharedArena arena = SharedArena.open(arenaOptions);
        DeviceTransfers transfers =
            new DeviceTransfers(
                new Pair(executor),
                new DeviceTransfers.Resources(
                    new HostCommunicators(
                        HostOptions.defaults()
                            .withFolder(folder.resolve(arguments[1]))
                            .withHostIdentity(arguments[1])),
                    (key, rank) ->
                        FileBootstrap.open(
                            folder, UniqueId.decode(rendezvous.next()), rank, key.size()),
                    CommunicatorWire::new,
                    arena),
                TransferOptions.DEFAULT.withDeadline(
                    Duration.ofMillis(Long.parseLong(arguments[3]))))) {
      System.out.println("ready");
      new WaiterMain(executor, transfers).follow();
    }
  }

  /** The two executors; the only device of each is its host. */
  private record Pair(int self) implements TransferMembership {
    static DeviceId device(int executor) {
      return new DeviceId(Integer.toString(executor), 0);
    }

    @Override
    public String executor() {
      return Integer.toString(self);
    }

    @Override
    public List<DeviceId> devices() {
      return List.of(device(self));
    }

    @Override
    public CliqueMember member(DeviceId device) {
      return new CliqueMember(device.executor(), "first", Device.HOST);
    }
  }

  private void follow() throws IOException {
    BufferedReader orders =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = orders.readLine(); line != null; line = orders.readLine()) {
      String[] words = line.split(" ", -1);
      try {
        if (words[0].equals("exchange")) {
          exchange();
        } else {
          waitForever(Integer.parseInt(words[1]));
        }
      } catch (RuntimeException e) {
        e.printStackTrace();
        System.out.println("failed " + e);
        return;
      }
    }
  }

  private void exchange() {
    if (executor == 0) {
      TypedBuffer buffer = TypedBuffer.wrap(ByteBuffer.allocateDirect(ELEMENTS), DataType.INT8);
      SourceBuffer source = SourceBuffer.of(Pair.device(0), buffer);
      transfers
          .send(List.of(source), List.of(Pair.device(1)), new long[] {0})
          .forEach(event -> event.await(Deadline.after(TIMEOUT)));
    } else {
      receive(1).forEach(WaiterMain::awaitAndClose);
    }
    System.out.println("done");
  }

  private static void awaitAndClose(ReceivedBuffer received) {
    received.event().await(Deadline.after(TIMEOUT));
    received.close();
  }

  private List<ReceivedBuffer> receive(int count) {
    return transfers.receive(
        Pair.device(executor),
        Collections.nCopies(count, BufferShape.of(DataType.INT8, ELEMENTS)),
        Collections.nCopies(count, Pair.device(1 - executor)),
        LongStream.range(0, count).toArray());
  }

  private void waitForever(int count) {
    long manifests = transfers.statistics().get(TransferCounter.MANIFESTS);
    List<ReceivedBuffer> never = receive(count);
    Deadline deadline = Deadline.after(TIMEOUT);
    while (transfers.statistics().get(TransferCounter.MANIFESTS) == manifests) {
      if (deadline.expired()) {
        throw new IllegalStateException("the lane does not start");
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    System.out.println("ready");
    int failed = 0;
    for (ReceivedBuffer received : never) {
      failed += hasFailed(received.event()) ? 1 : 0;
    }
    System.out.println("done " + failed);
    never.forEach(ReceivedBuffer::close);
  }

  private static boolean hasFailed(Event event) {
    try {
      event.await(Deadline.after(TIMEOUT));
      return false;
    } catch (EventFailedException e) {
      return true;
    }
  }
}
