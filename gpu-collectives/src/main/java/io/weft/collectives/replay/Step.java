package io.weft.collectives.replay;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.Operation;
import java.util.List;
import java.util.Optional;

/**
 * Operations that run as one.
 *
 * @param operations at least one
 */
record Step(List<Operation> operations) {
  Step {
    operations = List.copyOf(operations);
  }

  /** Whether a buffer has moved, all buffers being still there and large enough. */
  boolean hasMoved() {
    return buffers().stream().anyMatch(Step::isElsewhere);
  }

  private static boolean isElsewhere(TypedBuffer buffer) {
    return buffer.address() != buffer.owner().address() + buffer.offset();
  }

  private List<TypedBuffer> buffers() {
    return operations.stream().flatMap(operation -> operation.buffers().stream()).toList();
  }

  /** What makes this step impossible wherever the buffers are; empty when nothing does. */
  Optional<String> obstacle() {
    return buffers().stream().map(Step::obstacleOf).flatMap(Optional::stream).findFirst();
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
      return Optional.of(buffer + " is gone: " + e.getMessage());
    }
  }

  /** The first buffer that has moved, in words. */
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

  /** The same operations where the buffers are now. */
  Step current() {
    return new Step(
        operations.stream().map(operation -> operation.withBuffers(TypedBuffer::current)).toList());
  }

  /** What all ranks have to agree on: the collectives, not the sends and receives. */
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
