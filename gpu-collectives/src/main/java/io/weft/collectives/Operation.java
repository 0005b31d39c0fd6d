package io.weft.collectives;

import java.util.List;
import java.util.function.UnaryOperator;

/** An operation that a rank runs on a communicator. */
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

  /** The arguments on which all ranks must agree. */
  Signature signature();

  /** The size that rates are computed from, as nccl-tests counts it. */
  long bytes();

  /** The buffers this rank reads or writes, in the order of the record's components. */
  List<TypedBuffer> buffers();

  /** The same operation on other buffers. */
  Operation withBuffers(UnaryOperator<TypedBuffer> replacement);

  /**
   * Checks the arguments that this rank can check alone.
   *
   * @throws CollectiveException of kind INVALID
   */
  void check(int rank, int nranks);
}
