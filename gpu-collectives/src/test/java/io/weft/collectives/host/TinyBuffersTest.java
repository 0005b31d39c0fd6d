package io.weft.collectives.host;

import io.weft.collectives.DataType;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostOptions.BufferSizes;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests the smallest buffers that options allow, with more ranks than such a stage has elements.
 */
class TinyBuffersTest {
  private static final int RANKS = 20;
  private static final int PART = 50;

  @TempDir Path folder;

  @Test
  void aStageHoldsAnElementOfEveryRank() {
    HostCommunicators factory =
        new HostCommunicators(
            HostOptions.defaults().withFolder(folder).withSizes(new BufferSizes(128, 128, 128)));
    try (RankGang gang = RankGang.open(factory, RANKS, Duration.ofSeconds(90))) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            TypedBuffer send = doubles(RANKS * PART);
            TypedBuffer receive = doubles(PART);
            Values.fill(send, rank);
            communicator.reduceScatter(send, receive, ReduceOp.SUM);
            Values.check(
                "reduce-scatter",
                receive,
                i -> Values.reduced(DataType.FLOAT64, ReduceOp.SUM, RANKS, rank * PART + i));
            communicator.allReduce(send, ReduceOp.MAX);
            Values.check(
                "all-reduce", send, i -> Values.reduced(DataType.FLOAT64, ReduceOp.MAX, RANKS, i));
          });
    }
  }

  private static TypedBuffer doubles(int count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(8 * count), DataType.FLOAT64);
  }
}
