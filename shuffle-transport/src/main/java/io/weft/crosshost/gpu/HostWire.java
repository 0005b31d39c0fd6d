package io.weft.crosshost.gpu;

import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.collectives.fault.CollectiveException.Kind;
import io.weft.crosshost.wire.CommunicatorWire;
import io.weft.crosshost.wire.Manifest;
import io.weft.crosshost.wire.ManifestEntry;
import io.weft.crosshost.wire.TransferWire;
import io.weft.device.Deadline;
import io.weft.device.cuda.CudaException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Optional;

/**
 * A wire between two GPUs over the hosts' communicator: mapped if both ends can map, else staged.
 * The choice is made on first use, so that the wire can be aborted meanwhile.
 */
final class HostWire implements TransferWire {
  private final HostRoute route;
  private final OpenedGpu gpu;
  private final TransferWire host;
  private TransferWire chosen;

  /** Creates a wire that has not chosen yet. */
  HostWire(HostRoute route, OpenedGpu gpu) {
    this.route = route;
    this.gpu = gpu;
    this.host = new CommunicatorWire(route.hosts());
  }

  private TransferWire chosen() {
    if (chosen == null) {
      Optional<SharedRoom> room = route.mayMap() ? openRoom() : Optional.empty();
      chosen =
          room.isPresent()
              ? new IpcWire(host, room.get(), gpu.departed(), route.timeout())
              : new StagedWire(host, gpu.device(), gpu.pinned(), route.timeout());
    }
    return chosen;
  }

  /** Opens a room at both ends, or at neither. */
  private Optional<SharedRoom> openRoom() {
    int unused = gpu.departed().poll();
    SharedRoom room = null;
    String obstacle = "";
    try {
      room = SharedRoom.take(gpu.device(), gpu.shared());
    } catch (CudaException | IllegalStateException e) {
      obstacle = String.valueOf(e.getMessage());
    }
    try {
      obstacle = obstacle(obstacle, room);
    } catch (RuntimeException e) {
      discard(room);
      throw e;
    }
    route.mapped().accept(obstacle);
    if (obstacle.isEmpty()) {
      return Optional.of(room);
    }
    discard(room);
    return Optional.empty();
  }

  private static void discard(SharedRoom room) {
    if (room != null) {
      room.close();
    }
  }

  /** Why one of the ends cannot map; empty if the room is open at both ends. */
  private String obstacle(String own, SharedRoom room) {
    Deadline deadline = Deadline.after(route.timeout());
    BootstrapRounds rounds =
        new BootstrapRounds(new CommunicatorBootstrap(route.hosts()), deadline);
    Optional<String> either =
        rounds.exchange("ipcroom", () -> own.getBytes(StandardCharsets.UTF_8)).stream()
            .map(reason -> new String(reason, StandardCharsets.UTF_8))
            .filter(reason -> !reason.isEmpty())
            .findFirst();
    if (either.isPresent()) {
      return either.get();
    }
    try {
      room.open(route.hosts(), deadline);
      return "";
    } catch (CollectiveException e) {
      if (e.kind() != Kind.INVALID) {
        throw e;
      }
      return e.getMessage();
    }
  }

  @Override
  public List<ManifestEntry> exchange(Manifest mine) {
    return chosen().exchange(mine);
  }

  @Override
  public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
    chosen().move(sends, receives);
  }

  @Override
  public Optional<RuntimeException> failure() {
    return host.failure();
  }

  @Override
  public void abort(String reason) {
    host.abort(reason);
  }

  @Override
  public void close() {
    if (chosen != null) {
      chosen.close();
    }
  }
}
