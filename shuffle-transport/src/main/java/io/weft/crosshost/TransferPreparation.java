package io.weft.crosshost;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.clique.CliqueKey;
import io.weft.collectives.clique.CliqueMember;
import io.weft.crosshost.buffer.BufferShape;
import io.weft.crosshost.buffer.ReceiveMemory;
import io.weft.crosshost.buffer.TransferBuffer;
import io.weft.device.Device;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.tensor.codec.CodecKind;
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

  private final Membership membership;
  private final ReceiveMemory host;
  private final Optional<ReceiveMemory> gpu;
  private final Coders coders;
  private final CodecKind codec;
  private final Map<TransferEnds, CliqueKey> cliques = new HashMap<>();
  private final List<PreparedTransfer> transfers = new ArrayList<>();
  private final List<TransferBuffer> taken = new ArrayList<>();
  private boolean done;

  /**
   * Creates an empty preparation.
   *
   * @param codec for the elements of all transfers
   */
  TransferPreparation(
      Membership membership,
      ReceiveMemory host,
      Optional<ReceiveMemory> gpu,
      Coders coders,
      CodecKind codec) {
    this.membership = membership;
    this.host = host;
    this.gpu = gpu;
    this.coders = coders;
    this.codec = codec;
  }

  PreparedTransfer send(int index, SourceBuffer source, DeviceId destination, long key) {
    TransferEnds ends = new TransferEnds(source.device(), destination, true);
    CliqueKey clique = clique(ends);
    requireThere(index, source);
    TypedBuffer buffer = source.buffer();
    return keep(
        new PreparedTransfer(clique, ends, key, buffer, coding(ends, buffer), source.definition()));
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
  PreparedTransfer receive(DeviceId device, TransferBuffer memory, TypedBuffer buffer, Ends from) {
    TransferEnds ends = new TransferEnds(device, from.source(), false);
    Event allocation = HostEvent.completed("the allocation of " + buffer);
    CliqueKey clique = clique(ends);
    return keep(
        new PreparedTransfer(clique, ends, from.key(), buffer, coding(ends, buffer), allocation));
  }

  /** Allocates the memory for chunks now, because it must exist when both ends have matched. */
  private Coding coding(TransferEnds ends, TypedBuffer buffer) {
    if (codec == CodecKind.NONE) {
      return Coding.PLAIN;
    }
    Device device = member(ends.local()).device();
    if (device.kind() == Device.Kind.CUDA) {
      throw new IllegalArgumentException(
          "%s is %s: codecs take arrays in memory of the host".formatted(ends.local(), device));
    }
    long bytes = Coding.stagingBytes(codec, buffer.type(), buffer.count());
    try {
      TransferBuffer staging = host.take(bytes);
      taken.add(staging);
      return new Coding(codec, staging, coders);
    } catch (IOException e) {
      throw new TransferException(
          "no memory for the chunks of %s as %s: %s".formatted(buffer, codec, e.getMessage()), e);
    }
  }

  /** The source of an array, and its key. */
  record Ends(DeviceId source, long key) {}

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
      throw new TransferException(
          "transfer %d: no memory to receive %s: %s".formatted(index, shape, e.getMessage()), e);
    }
  }

  private PreparedTransfer keep(PreparedTransfer transfer) {
    transfers.add(transfer);
    return transfer;
  }

  /** Finds the clique. Both ends sort the members in the same way. */
  private CliqueKey clique(TransferEnds ends) {
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

  private static void requireOneKind(TransferEnds ends, CliqueMember local, CliqueMember peer) {
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
}
