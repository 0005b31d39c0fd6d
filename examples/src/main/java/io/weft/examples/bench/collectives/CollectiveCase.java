package io.weft.examples.bench.collectives;

import io.weft.collectives.DataType;
import io.weft.collectives.OperationKind;
import io.weft.collectives.ReduceOp;

/**
 * One row of the benchmark: an operation of one size.
 *
 * @param operation a collective
 * @param type of the elements
 * @param reduction unused by operations that do not reduce
 * @param count elements of the smaller buffer of a rank; of a ragged all-to-all, of each buffer
 * @param nranks ranks that take part
 * @param inPlace whether a rank sends from and receives into one buffer
 */
public record CollectiveCase(
    OperationKind operation,
    DataType type,
    ReduceOp reduction,
    long count,
    int nranks,
    boolean inPlace) {
  /**
   * Creates a case of about this size, as nccl-tests counts it; a part has at least one element.
   */
  static CollectiveCase ofSize(
      OperationKind operation,
      DataType type,
      ReduceOp reduction,
      long bytes,
      int nranks,
      boolean inPlace) {
    long parts = inParts(operation) ? nranks : 1;
    long count = Math.max(1, bytes / type.bytes() / parts);
    return new CollectiveCase(operation, type, reduction, count, nranks, inPlace);
  }

  /** Whether one of a rank's buffers has a part for every rank. */
  private static boolean inParts(OperationKind operation) {
    return switch (operation) {
      case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL -> true;
      default -> false;
    };
  }

  /** Whether ranks can send from and receive into one buffer. */
  static boolean worksInPlace(OperationKind operation) {
    return operation != OperationKind.RAGGED_ALL_TO_ALL;
  }

  boolean sendsParts() {
    return operation == OperationKind.REDUCE_SCATTER || operation == OperationKind.ALL_TO_ALL;
  }

  boolean receivesParts() {
    return operation == OperationKind.ALL_GATHER || operation == OperationKind.ALL_TO_ALL;
  }

  /** Elements of the larger buffer of a rank. */
  long largerCount() {
    return count * (inParts(operation) ? nranks : 1);
  }

  /** Bytes of the larger buffer of a rank. */
  public long bytes() {
    return largerCount() * type.bytes();
  }

  RaggedParts raggedParts() {
    return new RaggedParts(count, nranks);
  }

  /**
   * The factor from algorithm bandwidth to bus bandwidth, as nccl-tests defines it; of a ragged
   * all-to-all, the part that goes to other ranks.
   */
  double busFactor() {
    return switch (operation) {
      case ALL_REDUCE -> 2.0 * (nranks - 1) / nranks;
      case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL -> (double) (nranks - 1) / nranks;
      case RAGGED_ALL_TO_ALL -> RaggedParts.sentAway(nranks);
      default -> 1;
    };
  }

  /** Returns the size divided by the time, in bytes a second. */
  double algorithmBandwidth(double seconds) {
    return bytes() / seconds;
  }

  /** Returns the bytes a second that cross between ranks. */
  double busBandwidth(double seconds) {
    return algorithmBandwidth(seconds) * busFactor();
  }

  /** Formats the order for a child process. */
  String order(boolean check, int iterations) {
    return "%s %s %s %d %d %d %d"
        .formatted(operation, type, reduction, count, inPlace ? 1 : 0, check ? 1 : 0, iterations);
  }

  /** Splits an order or answer into words. */
  static String[] words(String line) {
    return line.split(" ", -1);
  }

  /** Parses the case of an order. */
  static CollectiveCase parse(String[] words, int nranks) {
    return new CollectiveCase(
        operation(words[0]),
        DataType.parse(words[1]),
        reduction(words[2]),
        Long.parseLong(words[3]),
        nranks,
        words[4].equals("1"));
  }

  /** Returns the operation with a name such as all-reduce. */
  static OperationKind operation(String text) {
    for (OperationKind kind : OperationKind.values()) {
      if (kind.toString().equals(text) && isMeasured(kind)) {
        return kind;
      }
    }
    throw new IllegalArgumentException("no operation to measure is called " + text);
  }

  private static boolean isMeasured(OperationKind kind) {
    return switch (kind) {
      case ALL_REDUCE,
          ALL_GATHER,
          REDUCE_SCATTER,
          ALL_TO_ALL,
          RAGGED_ALL_TO_ALL,
          BROADCAST,
          REDUCE ->
          true;
      default -> false;
    };
  }

  /** Returns the reduction with a name such as sum. */
  static ReduceOp reduction(String text) {
    for (ReduceOp op : ReduceOp.values()) {
      if (op.toString().equals(text)) {
        return op;
      }
    }
    throw new IllegalArgumentException("no reduction is called " + text);
  }
}
