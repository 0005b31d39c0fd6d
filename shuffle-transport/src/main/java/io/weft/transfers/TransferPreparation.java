package io.weft.transfers;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueKey.CliqueMember;
import io.weft.device.Device;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.probe.JfrModule;
import io.weft.tensor.codec.CodecKind;
import io.weft.transfers.DeviceTransfers.TransferMembership;
import io.weft.transfers.PreparedTransfer.TransferEndpoints;
import io.weft.transfers.TransferEncoding.CodecThreads;
import io.weft.transfers.TransferException.NoReceiveMemoryException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Prepares the transfers of one call on the caller's thread: finds each clique once and allocates
 * the receive buffers. Closing cancels the prepared transfers, unless {@link #done} was called.
 *
 * <p>Not thread-safe.
 */
final class TransferPreparation implements AutoCloseable {
  private static final String PURPOSE = "transfers";

  private final TransferMembership membership;
  private final ReceiveMemory host;
  private final Optional<ReceiveMemory> gpu;
  private final CodecThreads coders;
  private final CodecKind codec;
  private final TransferAttempt attempt;
  private final Map<TransferEndpoints, CliqueKey> cliques = new HashMap<>();
  private final List<PreparedTransfer> transfers = new ArrayList<>();
  private final List<TransferBuffer> taken = new ArrayList<>();
  private boolean done;

  /**
   * Creates an empty preparation.
   *
   * @param codec for the elements of all transfers
   * @param attempt of all transfers
   */
  TransferPreparation(
      TransferMembership membership,
      ReceiveMemory host,
      Optional<ReceiveMemory> gpu,
      CodecThreads coders,
      CodecKind codec,
      TransferAttempt attempt) {
    this.membership = membership;
    this.host = host;
    this.gpu = gpu;
    this.coders = coders;
    this.codec = codec;
    this.attempt = attempt;
  }

  PreparedTransfer send(int index, SourceBuffer source, DeviceId destination, long key) {
    TransferEndpoints ends = new TransferEndpoints(source.device(), destination, true);
    CliqueKey clique = clique(ends);
    requireThere(index, source);
    TypedBuffer buffer = source.buffer();
    return keep(
        new PreparedTransfer(
            clique, ends, key, attempt, buffer, coding(ends, buffer), source.definition()));
  }

  /** Checks the source here, because a failed copy in the driver would not say why. */
  private void requireThere(int index, SourceBuffer source) {
    Optional<String> obstacle =
        isOnGpu(source.device())
            ? gpu.flatMap(memory -> memory.obstacle(source.buffer()))
            : Optional.empty();
    if (obstacle.isPresent()) {
      throw new IllegalArgumentException(
          "transfer %d: %s cannot be sent from %s: %s"
              .formatted(index, source.buffer(), source.device(), obstacle.get()));
    }
  }

  private boolean isOnGpu(DeviceId device) {
    return member(device).device().kind() == Device.Kind.CUDA;
  }

  /** Prepares a receive. Its buffer is allocated before the peer learns of the transfer. */
  PreparedTransfer receive(
      DeviceId device, TransferBuffer memory, TypedBuffer buffer, ReceiveSource from) {
    TransferEndpoints ends = new TransferEndpoints(device, from.source(), false);
    Event allocation = HostEvent.completed("the allocation of " + buffer);
    CliqueKey clique = clique(ends);
    return keep(
        new PreparedTransfer(
            clique, ends, from.key(), attempt, buffer, coding(ends, buffer), allocation));
  }

  /** Allocates the memory for chunks now, because it must exist when both ends have matched. */
  private TransferEncoding coding(TransferEndpoints ends, TypedBuffer buffer) {
    if (codec == CodecKind.NONE) {
      return TransferEncoding.PLAIN;
    }
    Device device = member(ends.local()).device();
    if (device.kind() == Device.Kind.CUDA) {
      throw new IllegalArgumentException(
          "%s is %s: codecs take arrays in memory of the host".formatted(ends.local(), device));
    }
    long bytes = TransferEncoding.stagingBytes(codec, buffer.type(), buffer.count());
    try {
      TransferBuffer staging = host.take(bytes);
      taken.add(staging);
      return new TransferEncoding(codec, staging, coders);
    } catch (IOException e) {
      throw new TransferException(
          "no memory for the chunks of %s as %s: %s".formatted(buffer, codec, e.getMessage()), e);
    }
  }

  /** The source of an array, and its key. */
  record ReceiveSource(DeviceId source, long key) {}

  TransferBuffer take(int index, DeviceId device, BufferShape shape) {
    ReceiveMemory memory =
        isOnGpu(device)
            ? gpu.orElseThrow(() -> new TransferException(device + " has no memory to receive in"))
            : host;
    try {
      TransferBuffer buffer = memory.take(shape.bytes());
      taken.add(buffer);
      return buffer;
    } catch (IOException e) {
      throw new NoReceiveMemoryException(
          "transfer %d: no memory to receive %s: %s".formatted(index, shape, e.getMessage()), e);
    }
  }

  private PreparedTransfer keep(PreparedTransfer transfer) {
    transfers.add(transfer);
    if (JfrModule.PRESENT) {
      TransferEvent.follow(transfer);
    }
    return transfer;
  }

  /** Finds the clique. Both ends sort the members in the same way. */
  private CliqueKey clique(TransferEndpoints ends) {
    CliqueKey known = cliques.get(ends);
    if (known == null) {
      List<CliqueMember> members = new ArrayList<>();
      members.add(member(ends.local()));
      members.add(member(ends.peer()));
      requireOneKind(ends, members.get(0), members.get(1));
      members.sort(null);
      known = new CliqueKey(members, PURPOSE);
      cliques.put(ends, known);
    }
    return known;
  }

  private static void requireOneKind(
      TransferEndpoints ends, CliqueMember local, CliqueMember peer) {
    if (local.device().kind() != peer.device().kind()) {
      throw new IllegalArgumentException(
          "%s is %s and %s is %s: arrays go between hosts or between GPUs"
              .formatted(ends.local(), local.device(), ends.peer(), peer.device()));
    }
  }

  private CliqueMember member(DeviceId device) {
    try {
      return membership.member(device);
    } catch (IOException e) {
      throw new TransferException(
          "executor %s does not find %s: %s"
              .formatted(membership.executor(), device, e.getMessage()),
          e);
    }
  }

  List<PreparedTransfer> transfers() {
    return transfers;
  }

  /** Hands the prepared transfers to their cliques; closing does nothing afterwards. */
  void done() {
    done = true;
  }

  @Override
  public void close() {
    if (!done) {
      transfers.forEach(PreparedTransfer::close);
      taken.forEach(TransferBuffer::close);
    }
  }

  /** Checks of the arguments of transfers. All throw IllegalArgumentException. */
  static final class TransferChecks {
    private TransferChecks() {}

    static void sameLengths(
        String operation, String arrays, int first, String peers, int second, int keys) {
      if (first != second || first != keys) {
        throw new IllegalArgumentException(
            "%s needs as many %s as %s and keys, but got %d, %d and %d"
                .formatted(operation, arrays, peers, first, second, keys));
      }
    }

    static void notEmpty(int index, BufferShape shape) {
      if (shape.isEmpty()) {
        throw new IllegalArgumentException(
            "transfer %d: the shape %s has no elements".formatted(index, shape));
      }
    }

    static void encodes(int index, CodecKind codec, DataType type) {
      if (!codec.codec().encodes(type)) {
        throw new IllegalArgumentException(
            "transfer %d: %s does not encode %s".formatted(index, codec, type));
      }
    }

    /** Exactly one end is on this executor. */
    static void oneEndHere(int index, String executor, DeviceId source, DeviceId destination) {
      boolean from = source.executor().equals(executor);
      boolean to = destination.executor().equals(executor);
      if (from && to) {
        throw new IllegalArgumentException(
            "transfer %d: source %s and destination %s are both on executor %s"
                .formatted(index, source, destination, executor));
      }
      if (!from && !to) {
        throw new IllegalArgumentException(
            "transfer %d: neither source %s nor destination %s is on executor %s"
                .formatted(index, source, destination, executor));
      }
    }

    static void twoExecutors(int index, DeviceId source, DeviceId destination) {
      if (source.executor().equals(destination.executor())) {
        throw new IllegalArgumentException(
            "transfer %d: source %s and destination %s are both on executor %s"
                .formatted(index, source, destination, source.executor()));
      }
    }

    static void exists(int index, String executor, DeviceId device, List<DeviceId> devices) {
      if (!devices.contains(device)) {
        throw new IllegalArgumentException(
            "transfer %d: executor %s has no device %d, its devices are %s"
                .formatted(
                    index,
                    executor,
                    device.ordinal(),
                    devices.stream().map(DeviceId::ordinal).toList()));
      }
    }

    /** The data must have the placement's type and number of elements. */
    static void sameShape(int index, ArrayPlacement placement, SourceBuffer data) {
      if (data.buffer().type() != placement.shape().type()
          || data.buffer().count() != placement.shape().elements()) {
        throw new IllegalArgumentException(
            "transfer %d: the placement is of %s but its data has %d %s"
                .formatted(index, placement.shape(), data.buffer().count(), data.buffer().type()));
      }
    }
  }
}
