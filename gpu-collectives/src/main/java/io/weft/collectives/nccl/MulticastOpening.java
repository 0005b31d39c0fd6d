package io.weft.collectives.nccl;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.nccl.MulticastWindow.MulticastScratch;
import io.weft.device.Deadline;
import io.weft.device.HostEvent;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.Descriptor;
import io.weft.device.cuda.DescriptorInbox;
import io.weft.device.cuda.InboxAddress;
import io.weft.device.cuda.MulticastObject;
import io.weft.device.cuda.MulticastSupport;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens a multicast window. Every rank says what it has. Rank 0 creates the multicast object and
 * puts a descriptor of it in the inbox of each rank. All ranks add their devices, then all bind and
 * map. Between these steps all ranks meet, because the driver waits without end for a device that
 * is not added. A failure on one rank fails all ranks. Confined to the thread of its stream.
 */
final class MulticastOpening {
  private static final Logger LOG = LoggerFactory.getLogger(MulticastOpening.class);

  /** How long ranks that could not end together wait for the others to end. */
  private static final Duration LINGER = Duration.ofSeconds(5);

  private final Communicator hosts;
  private final CudaMemory memory;
  private final CudaStream stream;
  private final Deadline deadline;
  private final Runnable prepare;
  private final BootstrapRounds rounds;
  private DescriptorInbox inbox;
  private MulticastScratch scratch;
  private PeerWindow lobby;
  private MulticastObject object;
  private HostEvent lease;
  private long multicastAddress;
  private long endsOffset;
  private long objectBytes;

  MulticastOpening(
      Communicator hosts,
      CudaMemory memory,
      CudaStream stream,
      Deadline deadline,
      Runnable prepare) {
    this.hosts = hosts;
    this.memory = memory;
    this.stream = stream;
    this.deadline = deadline;
    this.prepare = prepare;
    this.rounds = new BootstrapRounds(new CommunicatorBootstrap(hosts), deadline);
  }

  MulticastWindow run() {
    try {
      List<MulticastOffer> offers =
          rounds.exchange("multicastoffer", () -> named(this::offer).encode()).stream()
              .map(MulticastOffer::decode)
              .toList();
      MulticastOffer.requireTeam(offers);
      lobby = PeerWindow.open(hosts, scratch.barrierMemory(), stream, deadline);
      rounds.barrier("multicastcreated", () -> named(() -> create(offers)));
      rounds.barrier("multicastjoined", () -> named(this::join));
      rounds.barrier("multicastbound", () -> named(this::bind));
    } catch (RuntimeException | Error e) {
      giveUp(e);
      throw e;
    }
    inbox.close();
    return new MulticastWindow(memory, lease, lobby, scratch, object, multicastAddress, endsOffset);
  }

  private MulticastOffer offer() {
    requirePossible();
    long granularity = MulticastObject.granularity(hosts.nranks(), memory.bytes());
    MulticastObject.requireBindable(memory, granularity);
    prepare.run();
    scratch = new MulticastScratch(stream.device());
    endsOffset = MulticastObject.boundBytes(memory, granularity);
    objectBytes = endsOffset + MulticastObject.boundBytes(scratch.ends(), granularity);
    inbox = DescriptorInbox.open();
    lease = new HostEvent("a multicast window of " + memory.bytes() + " bytes");
    memory.usedUntil(lease);
    return new MulticastOffer(
        stream.device().description().uuid(), memory.bytes(), objectBytes, inbox.address());
  }

  private void requirePossible() {
    int nranks = hosts.nranks();
    if (nranks < 2 || nranks > PeerSignals.MAX_RANKS || !hosts.topology().isOneHost()) {
      throw new IllegalArgumentException(
          "the %d ranks must be 2 to %d and on one host".formatted(nranks, PeerSignals.MAX_RANKS));
    }
    if (!memory.device().device().equals(stream.device().device())) {
      throw new IllegalArgumentException(
          "the memory is of " + memory.device() + ", the rank on " + stream.device());
    }
    MulticastSupport.whyNot(stream.device())
        .ifPresent(
            reason -> {
              throw new IllegalArgumentException(reason);
            });
  }

  private Void create(List<MulticastOffer> offers) {
    if (hosts.rank() == 0) {
      object = MulticastObject.create(stream.device(), hosts.nranks(), objectBytes);
      try (Descriptor descriptor = object.export()) {
        for (MulticastOffer offer : offers.subList(1, offers.size())) {
          DescriptorInbox.send(offer.inbox(), descriptor);
        }
      }
    }
    return null;
  }

  private Void join() {
    if (hosts.rank() != 0) {
      try (Descriptor descriptor = inbox.receive()) {
        object = MulticastObject.of(stream.device(), descriptor, hosts.nranks(), objectBytes);
      }
    }
    object.join();
    return null;
  }

  private Void bind() {
    object.bind(0, memory);
    object.bind(endsOffset, scratch.ends());
    multicastAddress = object.map();
    return null;
  }

  private <T> T named(Supplier<T> part) {
    return RankRefusal.named(hosts.rank(), "share memory by multicast", part);
  }

  /**
   * Undoes the opening. No device has written to anything yet, so this rank's memory is freed when
   * its object has ended, independent of the others. If not all ranks do this together, the host
   * communicator is broken.
   *
   * @throws CollectiveException not of kind INVALID, on all ranks, if an object does not end
   */
  private void giveUp(Throwable cause) {
    if (inbox != null) {
      inbox.close();
    }
    if (lobby == null) {
      releaseMemory();
      releaseLobby();
      return;
    }
    CollectiveException failure = null;
    try {
      rounds.barrier("multicastgivenup", this::endObject);
    } catch (CollectiveException e) {
      failure = e;
    }
    endLobby(cause);
    retryEndObject();
    if (failure != null && cause instanceof CollectiveException e && e.kind() == Kind.INVALID) {
      failure.addSuppressed(cause);
      throw failure;
    }
  }

  private void endObject() {
    try {
      if (object != null) {
        object.close();
      }
      releaseMemory();
    } catch (CudaException e) {
      throw new CollectiveException(
          Kind.IO,
          List.of(rank()),
          "rank " + rank() + " cannot end memory for multicast: " + e.getMessage(),
          e);
    }
  }

  /** Retries after all ranks have tried. */
  private void retryEndObject() {
    try {
      endObject();
    } catch (CollectiveException e) {
      LOG.warn("Memory for multicast of rank {} is kept, as it may still be bound", rank(), e);
    }
  }

  /**
   * If the host communicator is broken, the ranks tell each other through their memory, and linger
   * for that.
   */
  private void endLobby(Throwable cause) {
    try {
      lobby.close(hosts);
      releaseLobby();
    } catch (RuntimeException e) {
      if (e != cause) {
        cause.addSuppressed(e);
      }
      if (lobby.closeLocally(Deadline.after(LINGER))) {
        releaseLobby();
      } else {
        LOG.warn("A few bytes that rank {} shared are kept: another may still write there", rank());
      }
    }
  }

  private int rank() {
    return hosts.rank();
  }

  private void releaseMemory() {
    if (scratch != null) {
      scratch.closeEnds();
    }
    if (lease != null) {
      lease.complete();
    }
  }

  private void releaseLobby() {
    if (scratch != null) {
      scratch.closeBarrierMemory();
    }
  }

  /**
   * The message of each rank before multicast is set up.
   *
   * <pre> long, long uuid of the GPU | long bytes | long bytes of the object | address of the inbox
   * </pre>
   *
   * @param bytes of its memory
   * @param objectBytes the size of the multicast object that this rank's driver needs for it
   * @param inbox where it receives a descriptor
   */
  record MulticastOffer(UUID gpu, long bytes, long objectBytes, InboxAddress inbox) {
    byte[] encode() {
      byte[] address = inbox.encode();
      return ByteBuffer.allocate(4 * Long.BYTES + address.length)
          .putLong(gpu.getMostSignificantBits())
          .putLong(gpu.getLeastSignificantBits())
          .putLong(bytes)
          .putLong(objectBytes)
          .put(address)
          .array();
    }

    static MulticastOffer decode(byte[] message) {
      ByteBuffer in = ByteBuffer.wrap(message);
      UUID gpu = new UUID(in.getLong(), in.getLong());
      long bytes = in.getLong();
      long objectBytes = in.getLong();
      byte[] address = new byte[in.remaining()];
      in.get(address);
      return new MulticastOffer(gpu, bytes, objectBytes, InboxAddress.decode(address));
    }

    /**
     * Checks that the ranks can have one window.
     *
     * @param offers by rank
     * @throws io.weft.collectives.CollectiveException of kind INVALID, the same on every rank
     */
    static void requireTeam(List<MulticastOffer> offers) {
      for (int rank = 1; rank < offers.size(); rank++) {
        MulticastOffer own = offers.get(rank);
        if (own.bytes() != offers.get(0).bytes()) {
          throw RankRefusal.of(
              List.of(0, rank),
              "rank 0 shares %d bytes by multicast but rank %d %d: the sizes must be equal"
                  .formatted(offers.get(0).bytes(), rank, own.bytes()),
              null);
        }
        if (own.objectBytes() != offers.get(0).objectBytes()) {
          throw RankRefusal.of(
              List.of(0, rank),
              "the driver of rank 0 needs %d bytes for multicast, that of rank %d %d"
                  .formatted(offers.get(0).objectBytes(), rank, own.objectBytes()),
              null);
        }
        for (int other = 0; other < rank; other++) {
          if (offers.get(other).gpu().equals(own.gpu())) {
            throw RankRefusal.of(
                List.of(other, rank),
                "rank %d and rank %d are both on GPU %s: multicast takes one rank for each GPU"
                    .formatted(other, rank, own.gpu()),
                null);
          }
        }
      }
    }
  }
}
