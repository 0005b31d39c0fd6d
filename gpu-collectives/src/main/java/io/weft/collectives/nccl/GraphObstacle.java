package io.weft.collectives.nccl;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.AllToAll;
import io.weft.collectives.operation.Operation;
import io.weft.collectives.operation.OperationKind;
import io.weft.device.cuda.CudaDevice;
import java.util.List;

/** Finds operations that a device cannot run without its host. Stateless. */
final class GraphObstacle {
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
    if (!ExactReductions.areOfNccl(operation)) {
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
      return buffer + " is gone: " + e.getMessage();
    }
    return device.isDeviceMemory(buffer.address()) ? "" : buffer + " is memory of the host";
  }
}
