package io.weft.examples.bench.collectives;

import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.ReduceOp;
import io.weft.collectives.operation.OperationKind;
import java.time.Duration;
import java.util.List;

/**
 * What to measure.
 *
 * @param operations in order
 * @param sizes in bytes, as nccl-tests counts them
 * @param type of the elements
 * @param reduction for operations that reduce
 * @param nranks processes on each side, 2 or more
 * @param inPlace whether every rank uses one buffer
 * @param kinds how Weft's ranks talk
 * @param openMpi whether to compare with OpenMPI where it is installed
 * @param bound whether each rank has a processor of its own, where there are enough
 * @param runs on each side that count
 * @param share how long a side repeats an operation in one run
 */
public record CollectivesBenchOptions(
    List<OperationKind> operations,
    List<Long> sizes,
    DataType type,
    ReduceOp reduction,
    int nranks,
    boolean inPlace,
    List<RankOptions.Kind> kinds,
    boolean openMpi,
    boolean bound,
    int runs,
    Duration share) {
  public CollectivesBenchOptions {
    operations = List.copyOf(operations);
    sizes = List.copyOf(sizes);
    kinds = List.copyOf(kinds);
    if (nranks < 2) {
      throw new IllegalArgumentException("collectives need 2 ranks or more, not " + nranks);
    }
    if (runs < 1) {
      throw new IllegalArgumentException("at least one run is needed, not " + runs);
    }
  }

  /** All cases, by operation, then size; sizes that come to the same are measured once. */
  List<CollectiveCase> cases() {
    return operations.stream()
        .flatMap(
            operation ->
                sizes.stream()
                    .map(
                        bytes ->
                            CollectiveCase.ofSize(
                                operation, type, reduction, bytes, nranks, inPlace)))
        .distinct()
        .toList();
  }
}
