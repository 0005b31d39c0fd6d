package io.weft.collectives.symmetric;

import io.weft.collectives.AllReduce;
import io.weft.collectives.Operation;
import io.weft.collectives.OrderedCommunicator.ReplayStep;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.bootstrap.BootstrapRounds;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Recorded small all-reduces that run as one. Ranks then meet once, instead of once for each.
 * Floating-point sums of more than two ranks are rounded as in one larger all-reduce.
 *
 * <p>Steps join if they follow each other, have the same type and reduction, and do not read what
 * an earlier one of them writes, on any rank.
 */
final class FusedSteps implements ReplayStep {
  /** A rank deposits so much at once; longer all-reduces use another algorithm. */
  static final int MAX_BYTES = 32 << 10;

  private final List<AllReduce> parts;
  private final List<Operation> together;
  private final TypedBuffer packed;

  private FusedSteps(List<AllReduce> parts) {
    this.parts = List.copyOf(parts);
    AllReduce first = parts.get(0);
    ByteBuffer memory = ByteBuffer.allocateDirect((int) bytes(parts));
    this.packed = TypedBuffer.wrap(memory, first.send().type());
    this.together = List.of(new AllReduce(packed, packed, first.op()));
  }

  private static long bytes(List<AllReduce> parts) {
    return parts.stream().mapToLong(part -> part.send().bytes()).sum();
  }

  /**
   * Finds the collective steps that may join the step before them on all ranks. Collective.
   *
   * @return by number of the collective step, which all ranks count alike; ranks may have different
   *     sends and receives between
   */
  static boolean[] agree(BootstrapRounds rounds, List<RecordedStep> steps) {
    List<byte[]> all = rounds.exchange("joins", () -> joins(steps));
    boolean[] agreed = new boolean[all.get(0).length];
    for (int step = 0; step < agreed.length; step++) {
      agreed[step] = true;
      for (byte[] rank : all) {
        agreed[step] &= rank[step] == 1;
      }
    }
    return agreed;
  }

  private static byte[] joins(List<RecordedStep> steps) {
    byte[] joins = new byte[steps.size()];
    int collectives = 0;
    List<AllReduce> run = new ArrayList<>();
    for (RecordedStep step : steps) {
      AllReduce small = smallAllReduce(step);
      boolean alike = small != null && !run.isEmpty() && isAlike(run.get(0), small);
      if (!alike) {
        run.clear();
      }
      if (small != null) {
        boolean free = run.stream().allMatch(earlier -> isIndependent(earlier, small));
        joins[collectives] = (byte) (alike && free ? 1 : 0);
        run.add(small);
      }
      collectives += step.isCollective() ? 1 : 0;
    }
    return Arrays.copyOf(joins, collectives);
  }

  private static AllReduce smallAllReduce(RecordedStep step) {
    return step.operations().size() == 1
            && step.operations().get(0) instanceof AllReduce reduce
            && reduce.send().bytes() <= MAX_BYTES
        ? reduce
        : null;
  }

  private static boolean isAlike(AllReduce a, AllReduce b) {
    return a.op() == b.op() && a.send().type() == b.send().type();
  }

  private static boolean isIndependent(AllReduce earlier, AllReduce later) {
    return !later.send().overlaps(earlier.receive())
        && !later.receive().overlaps(earlier.receive());
  }

  /** The steps with those that join as one, at most {@link #MAX_BYTES} together. */
  static List<ReplayStep> of(List<RecordedStep> steps, boolean[] joins) {
    List<ReplayStep> all = new ArrayList<>();
    List<AllReduce> parts = new ArrayList<>();
    int collectives = 0;
    for (RecordedStep step : steps) {
      AllReduce small = smallAllReduce(step);
      boolean joined = small != null && joins[collectives];
      if (!joined || bytes(parts) + small.send().bytes() > MAX_BYTES) {
        flush(parts, all);
      }
      if (small == null) {
        all.add(step);
      } else {
        parts.add(small);
      }
      collectives += step.isCollective() ? 1 : 0;
    }
    flush(parts, all);
    return List.copyOf(all);
  }

  private static void flush(List<AllReduce> parts, List<ReplayStep> all) {
    if (parts.size() == 1) {
      all.add(new RecordedStep(List.copyOf(parts)));
    } else if (!parts.isEmpty()) {
      all.add(new FusedSteps(parts));
    }
    parts.clear();
  }

  @Override
  public List<Operation> operations() {
    return together;
  }

  @Override
  public List<Operation> recorded() {
    return List.copyOf(parts);
  }

  @Override
  public void begin() {
    long at = packed.address();
    for (AllReduce part : parts) {
      Memory.copy(part.send().address(), at, part.send().bytes());
      at += part.send().bytes();
    }
  }

  @Override
  public void end() {
    long at = packed.address();
    for (AllReduce part : parts) {
      Memory.copy(at, part.receive().address(), part.receive().bytes());
      at += part.receive().bytes();
    }
  }
}
