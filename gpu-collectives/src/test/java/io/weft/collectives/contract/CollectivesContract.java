package io.weft.collectives.contract;

import static io.weft.collectives.contract.CommunicatorContract.buffer;
import static io.weft.collectives.contract.CommunicatorContract.filled;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.arithmetic.BFloat16;
import io.weft.collectives.arithmetic.Float16;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every collective gives the result of its definition, for every type, size and number of ranks.
 */
public interface CollectivesContract extends ReplicationContract {
  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void allReduce(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          for (ReduceOp op : ReduceOp.values()) {
            GuardedBuffer guarded = new GuardedBuffer(type, count, communicator.rank() % 8);
            TypedBuffer receive = guarded.buffer();
            TypedBuffer send = inPlace ? receive : filled(communicator, type, count);
            Values.fill(send, communicator.rank());
            communicator.allReduce(send, receive, op);
            String what = "all-reduce " + op + (inPlace ? " in place" : "") + " on " + communicator;
            Values.check(what, receive, i -> Values.reduced(type, op, nranks, i));
            guarded.check(what);
            if (!inPlace) {
              Values.check(what + ", send", send, i -> Values.of(communicator.rank(), i));
            }
          }
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void reduce(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          int root = (int) (count % nranks);
          ReduceOp op = ReduceOp.values()[(int) (count % 5)];
          TypedBuffer send = filled(communicator, type, count);
          boolean isRoot = communicator.rank() == root;
          TypedBuffer receive = isRoot && !inPlace ? buffer(type, count) : send;
          communicator.reduce(send, isRoot ? receive : TypedBuffer.empty(type), op, root);
          Values.check(
              "reduce " + op + " to " + root + " on " + communicator,
              receive,
              i ->
                  isRoot ? Values.reduced(type, op, nranks, i) : Values.of(communicator.rank(), i));
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void reduceScatter(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          ReduceOp op = ReduceOp.values()[(int) (count % 5)];
          TypedBuffer send = filled(communicator, type, nranks * count);
          long first = communicator.rank() * count;
          TypedBuffer receive = inPlace ? send.slice(first, count) : buffer(type, count);
          communicator.reduceScatter(send, receive, op);
          Values.check(
              "reduce-scatter " + op + " on " + communicator,
              receive,
              i -> Values.reduced(type, op, nranks, first + i));
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void allToAll(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          TypedBuffer send = filled(communicator, type, nranks * count);
          TypedBuffer receive = inPlace ? send : buffer(type, nranks * count);
          communicator.allToAll(send, receive);
          Values.check(
              "all-to-all on " + communicator,
              receive,
              i -> Values.of((int) (i / count), communicator.rank() * count + i % count));
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void gather(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          int root = (int) (count % nranks);
          boolean isRoot = communicator.rank() == root;
          TypedBuffer receive = buffer(type, isRoot ? nranks * count : 0);
          TypedBuffer send =
              isRoot && inPlace ? receive.slice(root * count, count) : buffer(type, count);
          Values.fill(send, communicator.rank());
          communicator.gather(send, receive, root);
          ReplicationContract.checkGathered("gather to " + root, receive, count);
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void scatter(int nranks) {
    forAllSizes(
        nranks,
        (communicator, type, count, inPlace) -> {
          int root = (int) (count % nranks);
          boolean isRoot = communicator.rank() == root;
          TypedBuffer send = filled(communicator, type, isRoot ? nranks * count : 0);
          TypedBuffer receive =
              isRoot && inPlace ? send.slice(root * count, count) : buffer(type, count);
          communicator.scatter(send, receive, root);
          Values.check(
              "scatter from " + root + " on " + communicator,
              receive,
              i -> Values.of(root, communicator.rank() * count + i));
        });
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void largeAllReduce(int nranks) {
    long count = 1_300_003;
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            TypedBuffer floats = filled(communicator, DataType.FLOAT32, count);
            communicator.allReduce(floats, ReduceOp.SUM);
            Values.check(
                "large all-reduce",
                floats,
                i -> Values.reduced(DataType.FLOAT32, ReduceOp.SUM, nranks, i));
          });
    }
  }

  /** Uses 16-bit floats, whose partial results are wider, in place and with averages. */
  @ParameterizedTest
  @MethodSource("io.weft.collectives.contract.CommunicatorContract#severalRanks")
  default void largeReductions(int nranks) {
    long count = 280_001;
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            TypedBuffer half = filled(communicator, DataType.FLOAT16, count);
            communicator.reduce(half, half, ReduceOp.SUM, 1);
            Values.check(
                "large reduce",
                half,
                i ->
                    communicator.rank() == 1
                        ? Values.reduced(DataType.FLOAT16, ReduceOp.SUM, nranks, i)
                        : Values.of(communicator.rank(), i));
            TypedBuffer send = filled(communicator, DataType.BFLOAT16, nranks * count);
            long first = communicator.rank() * count;
            TypedBuffer own = send.slice(first, count);
            communicator.reduceScatter(send, own, ReduceOp.AVERAGE);
            Values.check(
                "large reduce-scatter",
                own,
                i -> Values.reduced(DataType.BFLOAT16, ReduceOp.AVERAGE, nranks, first + i));
            TypedBuffer whole = filled(communicator, DataType.FLOAT16, 4 * count);
            communicator.allReduce(whole, ReduceOp.SUM);
            Values.check(
                "large all-reduce",
                whole,
                i -> Values.reduced(DataType.FLOAT16, ReduceOp.SUM, nranks, i));
          });
    }
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void barrierLetsNoRankLeaveEarly(int nranks) {
    AtomicInteger arrived = new AtomicInteger();
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (int round = 1; round <= 200; round++) {
              arrived.incrementAndGet();
              communicator.barrier();
              if (arrived.get() < round * nranks) {
                throw new AssertionError(
                    "left barrier " + round + " when " + arrived.get() + " had arrived");
              }
              communicator.barrier();
            }
          });
    }
  }

  /** Rounds once at the end: adding one by one in 16 bits would lose every small addend. */
  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void halfFloatsAccumulateInFloat32(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (long count : new long[] {5, 30_000}) {
              TypedBuffer half = buffer(DataType.FLOAT16, count);
              Values.fill(half, i -> communicator.rank() == 0 ? 2048 : 1);
              communicator.allReduce(half, ReduceOp.SUM);
              float sum = 2048 + nranks - 1;
              Values.check("float16", half, i -> Float16.toFloat(Float16.fromFloat(sum)));
              TypedBuffer brain = buffer(DataType.BFLOAT16, count * nranks);
              Values.fill(brain, i -> communicator.rank() == 0 ? 256 : 0.75);
              TypedBuffer part = buffer(DataType.BFLOAT16, count);
              communicator.reduceScatter(brain, part, ReduceOp.SUM);
              float brainSum = 256 + 0.75f * (nranks - 1);
              Values.check("bfloat16", part, i -> BFloat16.toFloat(BFloat16.fromFloat(brainSum)));
            }
          });
    }
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void integersWrapAround(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            TypedBuffer bytes = buffer(DataType.INT8, 9);
            Values.fill(bytes, i -> 100);
            communicator.allReduce(bytes, ReduceOp.SUM);
            Values.check("int8 sum", bytes, i -> (byte) (100 * nranks));
            Values.fill(bytes, i -> -100);
            communicator.allReduce(bytes, ReduceOp.AVERAGE);
            Values.check("int8 average", bytes, i -> (byte) (-100 * nranks) / nranks);
          });
    }
  }

  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void notANumberWinsMinimumAndMaximum(int nranks) {
    DataType[] floats = {DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64};
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            for (DataType type : floats) {
              TypedBuffer values = buffer(type, 3);
              Values.fill(
                  values,
                  i ->
                      i == 1 && communicator.rank() == nranks - 1
                          ? Double.NaN
                          : communicator.rank());
              communicator.allReduce(values, ReduceOp.MAX);
              Values.check("max of " + type, values, i -> i == 1 ? Double.NaN : nranks - 1);
            }
          });
    }
  }

  /** Runs all kinds of operations in a random order that is the same on all ranks. */
  @ParameterizedTest
  @MethodSource(RANK_COUNTS)
  default void randomSequence(int nranks) {
    try (RankGang gang = gang(nranks)) {
      gang.run(
          communicator -> {
            Random random = new Random(nranks);
            for (int step = 0; step < 150; step++) {
              RandomStep.run(communicator, random, "step " + step);
            }
          });
    }
  }

  @Test
  default void metricsCountOperations() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            TypedBuffer buffer = filled(communicator, DataType.INT32, 1000);
            for (int i = 0; i < 3; i++) {
              communicator.allReduce(buffer, ReduceOp.MAX);
            }
            long bytes =
                communicator.metrics().lines().stream()
                    .mapToLong(line -> line.calls() == 3 ? line.bytes() : -1)
                    .sum();
            if (bytes != 12_000) {
              throw new AssertionError("metrics: " + communicator.metrics().lines());
            }
          });
    }
  }
}
