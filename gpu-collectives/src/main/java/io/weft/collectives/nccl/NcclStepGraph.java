package io.weft.collectives.nccl;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Operation;
import io.weft.collectives.OperationKind;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.collectives.bootstrap.CommunicatorBootstrap;
import io.weft.collectives.nccl.EngineGraphs.NcclGraph;
import io.weft.collectives.nccl.HostReductions.NcclReductions;
import io.weft.collectives.nccl.NcclEnginePair.NcclEngineLane;
import io.weft.collectives.symmetric.GraphCapturer.Captured;
import io.weft.collectives.symmetric.GraphCapturer.StepGraph;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.device.Lane;
import io.weft.device.cuda.CudaDevice;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/**
 * Steps as a list of graphs, one for each run of steps on the same of NCCL's two communicators. A
 * graph waits on the host for the one before it on the other communicator.
 */
final class NcclStepGraph implements StepGraph {
  private final NcclCommunicator communicator;
  private final List<Part> parts;
  private final int size;

  /** One use by the holder and one for every submitted replay. */
  private final AtomicInteger uses = new AtomicInteger(1);

  private final AtomicBoolean closed = new AtomicBoolean();

  /** A graph and the side that it runs on. */
  private record Part(NcclEngineLane side, NcclGraph graph) {}

  private NcclStepGraph(NcclCommunicator communicator, List<Part> parts, int size) {
    this.communicator = communicator;
    this.parts = List.copyOf(parts);
    this.size = size;
  }

  /**
   * Captures steps if all ranks can. Runs on the thread whose turn it is. A failure breaks the
   * communicator and leaves no graph.
   */
  static Captured capture(
      NcclCommunicator communicator, List<List<Operation>> steps, Deadline deadline) {
    List<byte[]> obstacles =
        new BootstrapRounds(new CommunicatorBootstrap(communicator.host()), deadline)
            .exchange(
                "ncclcapture",
                () ->
                    GraphObstacle.of(steps, communicator.nccl().device())
                        .getBytes(StandardCharsets.UTF_8));
    for (int rank = 0; rank < obstacles.size(); rank++) {
      if (obstacles.get(rank).length > 0) {
        String obstacle = new String(obstacles.get(rank), StandardCharsets.UTF_8);
        return new Captured(Optional.empty(), "on rank " + rank + ", " + obstacle);
      }
    }
    List<Part> parts = captureAll(communicator, steps, deadline);
    return new Captured(Optional.of(new NcclStepGraph(communicator, parts, steps.size())), "");
  }

  private static List<Part> captureAll(
      NcclCommunicator communicator, List<List<Operation>> steps, Deadline deadline) {
    List<Part> parts = new ArrayList<>();
    int next = 0;
    while (next < steps.size()) {
      int end = endOfRun(steps, next);
      parts.add(part(communicator, steps.subList(next, end), deadline));
      next = end;
    }
    return parts;
  }

  private static boolean isCollective(List<Operation> step) {
    return step.get(0).kind().isCollective();
  }

  private static int endOfRun(List<List<Operation>> steps, int start) {
    int end = start;
    while (end < steps.size() && isCollective(steps.get(end)) == isCollective(steps.get(start))) {
      end++;
    }
    return end;
  }

  private static Part part(
      NcclCommunicator communicator, List<List<Operation>> run, Deadline deadline) {
    boolean collective = isCollective(run.get(0));
    NcclEngineLane side = communicator.side(collective);
    AtomicReference<NcclGraph> captured = new AtomicReference<>();
    communicator.run(
        side,
        "capturing a graph",
        () -> captured.set(side.engine().capture(run, collective, deadline)));
    return new Part(side, captured.get());
  }

  @Override
  public void replay() {
    communicator.inTurn(toString(), this::launch);
  }

  @Override
  public Event submit(Lane lane) {
    HostEvent use = new HostEvent(toString());
    uses.incrementAndGet();
    use.whenDone(cause -> endUse(event -> {}));
    return communicator.submitted(toString(), lane, use, this::launch);
  }

  private void launch(Deadline deadline) {
    for (Part part : parts) {
      long start = System.nanoTime();
      communicator.run(
          part.side(), "a graph", () -> part.side().engine().replay(part.graph(), deadline));
      count(part.graph().operations(), System.nanoTime() - start);
    }
  }

  /** Shares the time evenly, because the time of each operation is unknown. */
  private void count(List<Operation> operations, long nanos) {
    for (Operation each : operations) {
      communicator
          .metrics()
          .count(each.kind(), Algorithm.NCCL, each.bytes(), nanos / operations.size(), 0);
    }
  }

  /**
   * Ends the graphs after the submitted replays, without a wait for them. They end on the threads
   * of their engines, or have ended together with these threads.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      endUse(NcclEngineLane::settle);
    }
  }

  /** Drops one use; the last one ends the graphs. */
  private void endUse(Consumer<Event> ended) {
    if (uses.decrementAndGet() > 0) {
      return;
    }
    for (Part part : parts) {
      try {
        ended.accept(
            part.side()
                .lane()
                .submit("ending a graph", () -> part.side().engine().endGraph(part.graph())));
      } catch (IllegalStateException e) {
        // The communicator was closed, which ended its graphs too.
      }
    }
  }

  @Override
  public String toString() {
    return "a replay of " + size + " steps by the device";
  }

  /** Finds operations that a device cannot run without its host. Stateless. */
  static final class GraphObstacle {
    private GraphObstacle() {}

    /**
     * Why steps cannot be a graph; empty text if they can.
     *
     * @param device of this rank
     */
    static String of(List<List<Operation>> steps, CudaDevice device) {
      for (int i = 0; i < steps.size(); i++) {
        String obstacle = ofStep(steps.get(i), device);
        if (!obstacle.isEmpty()) {
          return "step " + i + ": " + obstacle;
        }
      }
      return "";
    }

    private static String ofStep(List<Operation> step, CudaDevice device) {
      long collectives = step.stream().filter(each -> each.kind().isCollective()).count();
      if (collectives != 0 && collectives != step.size()) {
        return "collectives and pairs in one group run on two streams";
      }
      return step.stream()
          .map(each -> ofOperation(each, device))
          .filter(obstacle -> !obstacle.isEmpty())
          .findFirst()
          .orElse("");
    }

    private static String ofOperation(Operation operation, CudaDevice device) {
      if (operation.kind() == OperationKind.BARRIER) {
        return "a barrier runs on the hosts";
      }
      if (!NcclReductions.areOfNccl(operation)) {
        return operation.signature() + " is reduced on the hosts";
      }
      if (operation instanceof AllToAll each && each.send().sameAs(each.receive())) {
        return "an all-to-all in place needs a copy, and the host chooses its memory";
      }
      return operation.buffers().stream()
          .filter(buffer -> buffer.count() > 0)
          .map(buffer -> ofBuffer(buffer, device))
          .filter(obstacle -> !obstacle.isEmpty())
          .findFirst()
          .map(obstacle -> operation.signature() + ": " + obstacle)
          .orElse("");
    }

    private static String ofBuffer(TypedBuffer buffer, CudaDevice device) {
      try {
        long unused = buffer.owner().address();
      } catch (IllegalStateException e) {
        return buffer + " is not usable: " + e.getMessage();
      }
      return device.isDeviceMemory(buffer.address()) ? "" : buffer + " is memory of the host";
    }
  }
}
