package io.weft.collectives.nccl;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.operation.Operation;
import io.weft.device.Event;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Keeps the memory of failed operations while the device may still use it. */
final class KeptBuffers {
  private static final Logger LOG = LoggerFactory.getLogger(KeptBuffers.class);

  private KeptBuffers() {}

  /** Keeps all buffers until the event ends; a buffer that is already free is only logged. */
  static void keep(List<Operation> operations, Event until) {
    for (Operation operation : operations) {
      for (TypedBuffer buffer : operation.buffers()) {
        try {
          buffer.owner().usedUntil(until);
        } catch (RuntimeException e) {
          LOG.warn("{} cannot be kept until {}", buffer, until.what(), e);
        }
      }
    }
  }
}
