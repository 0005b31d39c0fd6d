package io.weft.collectives.symmetric;

import io.weft.collectives.Operation;
import io.weft.collectives.OrderedCommunicator.ReplayStep;
import io.weft.collectives.TypedBuffer;
import java.util.List;
import java.util.Optional;

/**
 * Operations that run as one group.
 *
 * @param operations at least one
 */
record RecordedStep(List<Operation> operations) implements ReplayStep {
  RecordedStep {
    operations = List.copyOf(operations);
  }

  /** Whether a buffer has moved. All buffers must exist and be large enough. */
  boolean hasMoved() {
    return buffers().stream().anyMatch(RecordedStep::isElsewhere);
  }

  private static boolean isElsewhere(TypedBuffer buffer) {
    return buffer.address() != buffer.owner().address() + buffer.offset();
  }

  private List<TypedBuffer> buffers() {
    return operations.stream().flatMap(operation -> operation.buffers().stream()).toList();
  }

  /** Why this step is impossible at any address of its buffers; empty if it is possible. */
  Optional<String> whyNot() {
    return buffers().stream().map(RecordedStep::obstacleOf).flatMap(Optional::stream).findFirst();
  }

  private static Optional<String> obstacleOf(TypedBuffer buffer) {
    try {
      long address = buffer.owner().address();
      long bytes = buffer.owner().bytes();
      return buffer.offset() + buffer.bytes() <= bytes
          ? Optional.empty()
          : Optional.of(
              buffer + " no longer fits its memory of " + bytes + " bytes at " + hex(address));
    } catch (IllegalStateException e) {
      return Optional.of(buffer + " is not usable: " + e.getMessage());
    }
  }

  /** Describes the first buffer that has moved. */
  String describeMove() {
    for (TypedBuffer buffer : buffers()) {
      if (isElsewhere(buffer)) {
        return buffer + " moved to " + hex(buffer.owner().address() + buffer.offset());
      }
    }
    return "no buffer moved";
  }

  private static String hex(long address) {
    return "0x" + Long.toHexString(address);
  }

  /** The same operations on the current addresses of the buffers. */
  RecordedStep current() {
    return new RecordedStep(
        operations.stream().map(operation -> operation.withBuffers(TypedBuffer::current)).toList());
  }

  /** Whether all ranks have this step. */
  boolean isCollective() {
    return operations.stream().anyMatch(operation -> operation.kind().isCollective());
  }

  /**
   * The text on which all ranks must agree. It covers the collectives, not the sends and receives.
   */
  String signature() {
    StringBuilder text = new StringBuilder();
    for (Operation operation : operations) {
      if (operation.kind().isCollective()) {
        text.append(text.length() == 0 ? "" : " + ").append(operation.signature());
      }
    }
    return text.toString();
  }
}
