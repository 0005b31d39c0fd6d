package io.weft.transfers;

import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.CommunicatorOptions.LogPrefix;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.clique.CliqueCommunicators;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Event;
import io.weft.memory.SharedArena;
import io.weft.tensor.codec.CodecKind;
import io.weft.transfers.DeferredTransfer.DeferredEvent;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import io.weft.transfers.TransferCounter.TransferCounters;
import io.weft.transfers.TransferEncoding.CodecThreads;
import io.weft.transfers.TransferPreparation.TransferChecks;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Transfers arrays between this executor's devices and those of other executors.
 *
 * <p>Transfers between the same two devices match by order: the n-th send of one device matches the
 * n-th receive of the other. Both must have the same key, element type and count, or the transfer
 * fails at both ends. The two directions are independent, and so are different pairs of devices.
 * There is one exception: NCCL may enqueue a send while the GPU still writes the array. Then later
 * transfers of the same two GPUs wait behind it, in both directions.
 *
 * <p>A receive may start before its send. Every event ends within the deadline, and a failure names
 * both ends. The source's executor gets the original exception of a failed source; the destination
 * gets its message.
 *
 * <p>A receive that is closed before both ends have matched it is withdrawn: no send that starts
 * later meets it. A send of the same key fails. If the receive belongs to an attempt, see {@link
 * #ofAttempt}, the send waits for the next receive of these two devices, and fails if that has
 * another key.
 *
 * <p>Thread-safe. Closing fails the transfers under way.
 */
public final class DeviceTransfers implements AutoCloseable {
  private final TransferMembership membership;
  private final TransferBuffers buffers;
  private final Optional<GpuResources> gpu;
  private final CliqueAccess access;
  private final TransferCounters counters;
  private final CodecThreads coders;
  private final TransferCliques cliques;
  private final Map<DeviceId, TransferLauncher> launchers;
  private final TransferAttempt attempt;

  /** The transfers that were started by this object and have not ended. */
  private final Set<PreparedTransfer> started = ConcurrentHashMap.newKeySet();

  /** Why this object starts no more transfers; null while it does. */
  private volatile String withdrawn;

  /**
   * The resources of an executor's transfers.
   *
   * @param communicators makes the communicators of cliques
   * @param rendezvous the rendezvous at which the two ends of a clique create a communicator
   * @param wires opens a wire over a communicator
   * @param arena for receive buffers; the caller closes it after the transfers
   * @param gpu for transfers between GPUs; empty where this executor has none
   */
  public record Resources(
      CommunicatorFactory communicators,
      CliqueCommunicators.BootstrapOpener rendezvous,
      TransferWire.Factory wires,
      SharedArena arena,
      Optional<GpuResources> gpu) {
    /** The resources of an executor without a GPU. */
    public Resources(
        CommunicatorFactory communicators,
        CliqueCommunicators.BootstrapOpener rendezvous,
        TransferWire.Factory wires,
        SharedArena arena) {
      this(communicators, rendezvous, wires, arena, Optional.empty());
    }
  }

  /** Creates the transfers of an executor. Opens no communicator yet. */
  public DeviceTransfers(
      TransferMembership membership, Resources resources, TransferOptions options) {
    this.membership = membership;
    this.buffers = new TransferBuffers(resources.arena());
    this.gpu = resources.gpu();
    this.access =
        new CliqueAccess(
            resources,
            CommunicatorOptions.DEFAULT
                .withTimeout(options.deadline())
                .withPrefix(new LogPrefix(membership.executor(), "", -1, -1)));
    this.counters = new TransferCounters();
    this.coders = new CodecThreads(membership.executor(), counters);
    this.cliques =
        new TransferCliques(
            membership.executor(),
            access,
            counters,
            buffers,
            gpu.map(GpuResources::memory),
            options);
    this.attempt = TransferAttempt.NONE;
    this.launchers = new TreeMap<>();
    for (DeviceId device : membership.devices()) {
      launchers.put(device, new TransferLauncher(device, options, cliques, counters));
    }
  }

  /** The same transfers, for one attempt of work. */
  private DeviceTransfers(DeviceTransfers all, TransferAttempt attempt) {
    this.membership = all.membership;
    this.buffers = all.buffers;
    this.gpu = all.gpu;
    this.access = all.access;
    this.counters = all.counters;
    this.coders = all.coders;
    this.cliques = all.cliques;
    this.launchers = all.launchers;
    this.attempt = attempt;
  }

  /**
   * The same transfers for one attempt of work. It shares everything with this object, which the
   * caller closes. Transfers of an older attempt of the same work at the other end are stale, see
   * {@link TransferAttempt}.
   */
  public DeviceTransfers ofAttempt(TransferAttempt attemptOfWork) {
    return new DeviceTransfers(this, attemptOfWork);
  }

  /**
   * Withdraws the transfers that were started by this object and have not ended, and refuses new
   * ones. Their events fail at once. Their memory stays until no lane uses it. The other ends of an
   * attempt wait for the next transfers in this direction, and fail if these have other keys.
   * Without an attempt they fail.
   *
   * @param reason for the messages at both ends
   */
  public void withdraw(String reason) {
    withdrawn = reason;
    started.forEach(transfer -> transfer.withdraw(reason));
  }

  /** This executor's devices; empty if it takes no part in transfers. */
  public List<DeviceId> devices() {
    return membership.devices();
  }

  /**
   * Sends arrays as one batch that is launched at once.
   *
   * @param buffers arrays on devices of this executor, each with at least one element; as many as
   *     destinations and keys
   * @param destinations devices of other executors
   * @param keys of the transfers; see {@link ArrayPlacement#key}
   * @return an event for each array, by index: recorded once its source is recorded, complete when
   *     the buffer may be changed again
   * @throws IllegalArgumentException if an argument violates these rules; then nothing is sent
   * @throws TransferException if a destination is unknown; then nothing is sent
   */
  public List<Event> send(List<SourceBuffer> buffers, List<DeviceId> destinations, long[] keys) {
    return send(buffers, destinations, keys, CodecKind.NONE);
  }

  /**
   * As {@link #send(List, List, long[])}, with a codec. Arrays are encoded in chunks; a chunk is
   * sent while the next is encoded. The arrays themselves are only read.
   *
   * @param codec for all arrays, which must be in host memory; the receives must name the same
   *     codec
   * @throws IllegalArgumentException also if the codec does not support an array's type or device
   */
  public List<Event> send(
      List<SourceBuffer> buffers, List<DeviceId> destinations, long[] keys, CodecKind codec) {
    TransferChecks.sameLengths(
        "send", "buffers", buffers.size(), "destinations", destinations.size(), keys.length);
    for (int i = 0; i < buffers.size(); i++) {
      SourceBuffer source = buffers.get(i);
      TypedBuffer buffer = source.buffer();
      TransferChecks.notEmpty(i, BufferShape.of(buffer.type(), buffer.count()));
      TransferChecks.encodes(i, codec, buffer.type());
      checkEnds(i, source.device(), destinations.get(i));
    }
    try (TransferPreparation preparation = preparation(codec)) {
      for (int i = 0; i < buffers.size(); i++) {
        PreparedTransfer unused = preparation.send(i, buffers.get(i), destinations.get(i), keys[i]);
      }
      start(preparation.transfers());
      launch(preparation.transfers());
      preparation.done();
      return preparation.transfers().stream().map(PreparedTransfer::event).toList();
    }
  }

  /**
   * Receives arrays as one batch that is launched at once. Their memory is allocated before this
   * returns.
   *
   * @param device of this executor
   * @param shapes each with at least one element; as many as sources and keys
   * @param sources devices of other executors
   * @return the arrays, by index; the caller closes each of them
   * @throws IllegalArgumentException if an argument violates these rules; then nothing is allocated
   * @throws TransferException if a source is unknown or memory is short; then nothing is allocated
   */
  public List<ReceivedBuffer> receive(
      DeviceId device, List<BufferShape> shapes, List<DeviceId> sources, long[] keys) {
    return receive(device, shapes, sources, keys, CodecKind.NONE);
  }

  /**
   * As {@link #receive(DeviceId, List, List, long[])}, for arrays that are sent with a codec. A
   * chunk is decoded while the next one arrives; an array is defined once its event is complete.
   *
   * @param shapes of the decoded arrays
   * @param codec the one that the sends name
   * @throws IllegalArgumentException also if the codec does not support an array's type or device
   */
  public List<ReceivedBuffer> receive(
      DeviceId device,
      List<BufferShape> shapes,
      List<DeviceId> sources,
      long[] keys,
      CodecKind codec) {
    TransferChecks.sameLengths(
        "receive", "shapes", shapes.size(), "sources", sources.size(), keys.length);
    for (int i = 0; i < shapes.size(); i++) {
      TransferChecks.notEmpty(i, shapes.get(i));
      TransferChecks.encodes(i, codec, shapes.get(i).type());
      checkEnds(i, sources.get(i), device);
    }
    try (TransferPreparation preparation = preparation(codec)) {
      List<ReceivedBuffer> received = new ArrayList<>();
      for (int i = 0; i < shapes.size(); i++) {
        BufferShape shape = shapes.get(i);
        TransferBuffer memory = preparation.take(i, device, shape);
        PreparedTransfer transfer =
            preparation.receive(
                device,
                memory,
                memory.as(shape),
                new TransferPreparation.ReceiveSource(sources.get(i), keys[i]));
        received.add(new ReceivedBuffer(memory, shape, transfer, transfer.event()));
      }
      start(preparation.transfers());
      launch(preparation.transfers());
      preparation.done();
      return received;
    }
  }

  /**
   * Places arrays at other devices with deferred transfers. Deferred transfers gather in a batch,
   * which is launched when it is large or old enough, or when a thread waits for one of them. All
   * executors may pass the same placements, except for the data.
   *
   * @return a transfer for each placement, by index; the caller closes each of them
   * @throws IllegalArgumentException if both ends are on one executor, a shape is empty, or the
   *     source's data is missing or has another shape; then nothing is placed
   * @throws TransferException if an end is unknown or memory is short; then nothing is placed
   */
  public List<DeferredTransfer> place(List<ArrayPlacement> placements) {
    return place(placements, CodecKind.NONE);
  }

  /**
   * As {@link #place(List)}, with a codec as in {@link #send(List, List, long[], CodecKind)}.
   *
   * @param codec for all placements, the same on all executors
   * @throws IllegalArgumentException also if the codec does not support an array's type or device
   */
  public List<DeferredTransfer> place(List<ArrayPlacement> placements, CodecKind codec) {
    for (int i = 0; i < placements.size(); i++) {
      check(i, placements.get(i));
      TransferChecks.encodes(i, codec, placements.get(i).shape().type());
    }
    try (TransferPreparation preparation = preparation(codec)) {
      List<Deferral> deferrals = new ArrayList<>();
      for (int i = 0; i < placements.size(); i++) {
        deferrals.add(prepare(preparation, i, placements.get(i)));
      }
      start(preparation.transfers());
      List<DeferredTransfer> deferred = deferrals.stream().map(this::defer).toList();
      preparation.done();
      return deferred;
    }
  }

  /** A prepared placement. Transfer and memory are null if neither end is on this executor. */
  private record Deferral(
      ArrayPlacement placement, PreparedTransfer transfer, TransferBuffer memory) {}

  private Deferral prepare(TransferPreparation preparation, int index, ArrayPlacement placement) {
    if (isHere(placement.source())) {
      SourceBuffer data = placement.data().orElseThrow();
      PreparedTransfer transfer =
          preparation.send(index, data, placement.destination(), placement.key());
      return new Deferral(placement, transfer, null);
    }
    if (isHere(placement.destination())) {
      TransferBuffer memory = preparation.take(index, placement.destination(), placement.shape());
      PreparedTransfer transfer =
          preparation.receive(
              placement.destination(),
              memory,
              memory.as(placement.shape()),
              new TransferPreparation.ReceiveSource(placement.source(), placement.key()));
      return new Deferral(placement, transfer, memory);
    }
    return new Deferral(placement, null, null);
  }

  private DeferredTransfer defer(Deferral deferral) {
    PreparedTransfer transfer = deferral.transfer();
    if (transfer == null) {
      return DeferredTransfer.none(deferral.placement());
    }
    Runnable need = launchers.get(transfer.local()).defer(transfer);
    Event event = new DeferredEvent(transfer.event(), need);
    if (deferral.memory() == null) {
      return DeferredTransfer.of(transfer, event);
    }
    BufferShape shape = deferral.placement().shape();
    return DeferredTransfer.of(
        transfer, new ReceivedBuffer(deferral.memory(), shape, transfer, event));
  }

  private void check(int index, ArrayPlacement placement) {
    TransferChecks.notEmpty(index, placement.shape());
    TransferChecks.twoExecutors(index, placement.source(), placement.destination());
    if (!isHere(placement.source()) && !isHere(placement.destination())) {
      return;
    }
    checkEnds(index, placement.source(), placement.destination());
    if (isHere(placement.source())) {
      if (placement.data().isEmpty()) {
        throw new IllegalArgumentException(
            "transfer %d: executor %s is the source and must give the data"
                .formatted(index, membership.executor()));
      }
      TransferChecks.sameShape(index, placement, placement.data().get());
    }
  }

  private void checkEnds(int index, DeviceId source, DeviceId destination) {
    String executor = membership.executor();
    TransferChecks.oneEndHere(index, executor, source, destination);
    TransferChecks.exists(
        index, executor, isHere(source) ? source : destination, membership.devices());
  }

  private boolean isHere(DeviceId device) {
    return device.executor().equals(membership.executor());
  }

  private TransferPreparation preparation(CodecKind codec) {
    return new TransferPreparation(
        membership, buffers, gpu.map(GpuResources::memory), coders, codec, attempt);
  }

  /** Lets {@link #withdraw} find the transfers until they end. */
  private void start(List<PreparedTransfer> transfers) {
    for (PreparedTransfer transfer : transfers) {
      started.add(transfer);
      transfer.event().whenDone(failure -> started.remove(transfer));
    }
    String reason = withdrawn;
    if (reason != null) {
      throw new IllegalStateException("these transfers were withdrawn: " + reason);
    }
  }

  private void launch(List<PreparedTransfer> transfers) {
    Map<DeviceId, List<PreparedTransfer>> byDevice = new LinkedHashMap<>();
    for (PreparedTransfer transfer : transfers) {
      byDevice.computeIfAbsent(transfer.local(), device -> new ArrayList<>()).add(transfer);
    }
    byDevice.forEach((device, own) -> launchers.get(device).launch(own));
  }

  /** The receive buffers of the host. */
  TransferBuffers buffers() {
    return buffers;
  }

  /**
   * Fails the present and future transfers with an incarnation of an executor that has ended.
   *
   * @param reason for the messages
   */
  public void fail(String executor, String incarnation, String reason) {
    cliques.fail(executor, incarnation, reason);
  }

  /** A snapshot of the counters. */
  public TransferStatistics statistics() {
    BufferStatistics taken = buffers.statistics();
    return new TransferStatistics(
        counters.snapshot(),
        access.statistics(),
        gpu.map(each -> taken.plus(each.memory().statistics())).orElse(taken));
  }

  /** Closes the launchers first, then the lanes, then the resources that they used. */
  @Override
  public void close() {
    launchers.values().forEach(TransferLauncher::close);
    cliques.close();
    coders.close();
    access.close();
    buffers.close();
  }

  /**
   * Resources for transfers between GPUs, in addition to those between hosts. The caller closes
   * them after the transfers.
   *
   * @param communicators makes the communicators of cliques of GPUs
   * @param wires opens a wire over such a communicator
   * @param memory of this executor's GPU, for receive buffers
   */
  public record GpuResources(
      CommunicatorFactory communicators, TransferWire.Factory wires, ReceiveMemory memory) {}

  /** The devices of the application and the executor incarnation of each. Thread-safe. */
  public interface TransferMembership {
    /** The id of this executor. */
    String executor();

    /** This executor's devices; none on an executor that only passes placements of others. */
    List<DeviceId> devices();

    /**
     * The device in the current incarnation of its executor. May block on requests to others.
     *
     * @throws IOException if there is no such executor, or no answer comes
     */
    CliqueMember member(DeviceId device) throws IOException;
  }
}
