package io.weft.collectives.operation;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import java.util.List;
import java.util.function.UnaryOperator;

/** Something a rank does on a communicator. */
public sealed interface Operation
    permits Barrier,
        Broadcast,
        Reduce,
        AllReduce,
        AllGather,
        ReduceScatter,
        AllToAll,
        RaggedAllToAll,
        Gather,
        Scatter,
        Send,
        Receive {

  OperationKind kind();

  /** What all ranks have to agree on. */
  Signature signature();

  /** The bytes by which rates are counted, as nccl-tests counts them. */
  long bytes();

  /** The buffers this rank reads or writes, in the order of the record's components. */
  List<TypedBuffer> buffers();

  /** The same operation on other buffers. */
  Operation withBuffers(UnaryOperator<TypedBuffer> replacement);

  /**
   * Finds what is wrong without asking another rank.
   *
   * @throws CollectiveException of kind INVALID
   */
  void check(int rank, int nranks);
}
