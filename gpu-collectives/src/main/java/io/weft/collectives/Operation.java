package io.weft.collectives;

import java.util.List;
import java.util.function.ToIntFunction;
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

  /**
   * Checks that the host can access the buffers, as far as their owners tell.
   *
   * @throws CollectiveException of kind INVALID
   */
  default void requireOnHost() {
    for (TypedBuffer buffer : buffers()) {
      if (!buffer.owner().isOnHost()) {
        throw CollectiveException.invalid(
            signature() + ": " + buffer + " is memory of a GPU, so use a communicator of GPUs");
      }
    }
  }

  /**
   * The arguments of one operation on which all ranks must agree, small enough to send with every
   * message.
   *
   * @param code kind, type and reduction, see {@link #code(OperationKind, DataType, ReduceOp)}
   * @param root the root rank, or -1 for none
   * @param count elements per rank, or 0 where ranks may differ
   */
  public record Signature(int code, int root, long count) {
    private static final int NONE = 0;

    static Signature of(OperationKind kind, DataType type, ReduceOp op, int root, long count) {
      return new Signature(code(kind, type, op), root, count);
    }

    static Signature of(OperationKind kind, DataType type, int root, long count) {
      return new Signature(kind.code() << 16 | type.code() << 8, root, count);
    }

    static Signature of(OperationKind kind) {
      return new Signature(kind.code() << 16, -1, 0);
    }

    /** Kind, type and reduction, a byte each from bit 16 down; zero where an operation has none. */
    private static int code(OperationKind kind, DataType type, ReduceOp op) {
      return kind.code() << 16 | type.code() << 8 | op.code();
    }

    /** Whether all ranks take part, rather than a pair. */
    public boolean isCollective() {
      int kind = code >>> 16;
      return kind != OperationKind.SEND.code() && kind != OperationKind.RECEIVE.code();
    }

    /**
     * The text for messages. The signature may come from another rank, so unknown codes are shown
     * as numbers.
     */
    @Override
    public String toString() {
      StringBuilder text =
          new StringBuilder(name(OperationKind.values(), OperationKind::code, code >>> 16));
      if ((code & 0xff) != NONE) {
        text.append(' ').append(name(ReduceOp.values(), ReduceOp::code, code & 0xff));
      }
      if ((code >>> 8 & 0xff) != NONE) {
        text.append(" of ").append(count).append(' ');
        text.append(name(DataType.values(), DataType::code, code >>> 8 & 0xff));
      }
      if (root >= 0) {
        text.append(" with root ").append(root);
      }
      return text.toString();
    }

    private static <T> String name(T[] values, ToIntFunction<T> codeOf, int code) {
      for (T value : values) {
        if (codeOf.applyAsInt(value) == code) {
          return value.toString();
        }
      }
      return "unknown(" + code + ")";
    }
  }
}
