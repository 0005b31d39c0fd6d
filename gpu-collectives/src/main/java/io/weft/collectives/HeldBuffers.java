package io.weft.collectives;

import io.weft.device.HostEvent;
import java.util.Collection;
import java.util.List;

/**
 * Pins the memory of operations that are about to be queued. The memory is pinned first, because an
 * owner may free it at any moment and queued work cannot be taken back.
 */
final class HeldBuffers {
  private HeldBuffers() {}

  /**
   * Keeps the memory of all buffers until the event ends.
   *
   * @param what the work, for messages
   * @return the event, which the caller completes, also when nothing is queued
   * @throws CollectiveException of kind INVALID when an owner has freed its memory; nothing is kept
   *     then
   */
  static HostEvent hold(int rank, Collection<Operation> operations, String what) {
    HostEvent use = new HostEvent("the use of buffers by " + what);
    for (Operation operation : operations) {
      for (TypedBuffer buffer : operation.buffers()) {
        try {
          buffer.owner().usedUntil(use);
        } catch (IllegalStateException e) {
          use.complete();
          throw freed(rank, operation, buffer, e);
        }
      }
    }
    return use;
  }

  /** Checks that no buffer was freed. It asks the owners and does not touch the memory. */
  static void requireHeld(int rank, Operation operation) {
    for (TypedBuffer buffer : operation.buffers()) {
      try {
        long unused = buffer.owner().address();
      } catch (IllegalStateException e) {
        throw freed(rank, operation, buffer, e);
      }
    }
  }

  private static CollectiveException freed(
      int rank, Operation operation, TypedBuffer buffer, IllegalStateException cause) {
    return new CollectiveException(
        CollectiveException.Kind.INVALID,
        List.of(rank),
        operation.signature() + " on rank " + rank + ": " + buffer + " was freed: " + cause,
        cause);
  }
}
