package io.weft.training;

import io.weft.collectives.Communicator;
import io.weft.collectives.buffer.DataType;
import io.weft.collectives.buffer.TypedBuffer;
import io.weft.collectives.fault.CollectiveException;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Checks that all ranks register the same gradients in the same order. Two ranks with buckets of
 * the same size but different parameters would average unrelated values, and no all-reduce could
 * detect it. Every rank receives the messages of all ranks, so all fail alike.
 */
final class LayoutAgreement {
  private static final long FNV_BASIS = 0xcbf29ce484222325L;
  private static final long FNV_PRIME = 0x100000001b3L;

  private LayoutAgreement() {}

  /**
   * Checks the ranks. Collective.
   *
   * @throws CollectiveException of kind MISMATCH naming the ranks that differ from rank 0, and the
   *     first parameter in which they do
   */
  static void check(Communicator communicator, List<ParameterSpec> parameters, long bucketBytes) {
    long[][] heads = gather(communicator, new long[] {parameters.size(), bucketBytes});
    compare(heads, 0, () -> "has " + parameters.size() + " gradients");
    compare(heads, 1, () -> "has buckets of " + bucketBytes + " bytes");
    long[][] prints =
        gather(communicator, parameters.stream().mapToLong(LayoutAgreement::print).toArray());
    for (int i = 0; i < parameters.size(); i++) {
      int parameter = i;
      compare(prints, i, () -> "has as gradient " + parameter + ": " + parameters.get(parameter));
    }
  }

  private static void compare(long[][] said, int index, Supplier<String> here) {
    List<Integer> others = new ArrayList<>();
    for (int rank = 1; rank < said.length; rank++) {
      if (said[rank][index] != said[0][index]) {
        others.add(rank);
      }
    }
    if (!others.isEmpty()) {
      throw new CollectiveException(
          CollectiveException.Kind.MISMATCH,
          others,
          CollectiveException.name(others)
              + " registered other gradients than rank 0; this rank "
              + here.get());
    }
  }

  private static long[][] gather(Communicator communicator, long[] mine) {
    int n = mine.length;
    try (Tensor send = Tensor.allocate(TensorType.of(DataType.INT64, n));
        Tensor all = Tensor.allocate(TensorType.of(DataType.INT64, communicator.nranks(), n))) {
      for (int i = 0; i < n; i++) {
        Memory.putLong(send.address() + 8L * i, mine[i]);
      }
      TypedBuffer received = all.buffer();
      communicator.allGather(send.buffer(), received);
      long[][] result = new long[communicator.nranks()][n];
      for (int rank = 0; rank < result.length; rank++) {
        for (int i = 0; i < n; i++) {
          result[rank][i] = Memory.getLong(received.address() + 8L * (rank * (long) n + i));
        }
      }
      return result;
    }
  }

  /** FNV-1a hash of {@link ParameterSpec#toString}, which covers all its fields. */
  private static long print(ParameterSpec parameter) {
    long hash = FNV_BASIS;
    for (byte next : parameter.toString().getBytes(StandardCharsets.UTF_8)) {
      hash = (hash ^ next) * FNV_PRIME;
    }
    return hash;
  }
}
