package io.weft.collectives.host;

import io.weft.collectives.Algorithm;
import io.weft.collectives.Operation;
import io.weft.collectives.OperationKind;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.host.HostCommunicator.Call;
import io.weft.memory.Memory;
import java.util.List;

/**
 * Carries out collectives among a set of ranks. It numbers the ranks from 0; roots are such
 * numbers. One thread at a time. All ranks of the set run the same collectives in the same order.
 */
interface CollectiveEngine {
  /** Carries out an operation as a part of the call, and returns the algorithm used. */
  Algorithm execute(Call call, Operation operation);

  /** The engine for one rank: every operation copies the send buffer to the receive buffer. */
  static final class TrivialEngine implements CollectiveEngine {
    @Override
    public Algorithm execute(Call call, Operation operation) {
      List<TypedBuffer> buffers = operation.buffers();
      if (operation instanceof RaggedAllToAll ragged) {
        ragged(ragged);
      } else if (operation.kind() != OperationKind.BARRIER) {
        TypedBuffer send = buffers.get(0);
        Memory.copy(send.address(), buffers.get(1).address(), send.bytes());
      }
      return Algorithm.TRIVIAL;
    }

    private static void ragged(RaggedAllToAll operation) {
      RaggedLayout layout = operation.layout();
      long row = layout.rowElements() * operation.send().type().bytes();
      long rows = layout.rows(operation.receive().count());
      for (int update = 0; update < layout.entries(); update++) {
        layout.checkArrival(
            0, 0, update, 1, layout.sendSize(update), layout.targetOffset(update), rows);
        Memory.copy(
            operation.send().address() + layout.sendOffset(update) * row,
            operation.receive().address() + layout.targetOffset(update) * row,
            layout.sendSize(update) * row);
      }
    }
  }
}
