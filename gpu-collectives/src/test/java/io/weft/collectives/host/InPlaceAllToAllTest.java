package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.AllToAll;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.CommunicatorContract;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An all-to-all on one buffer uses little temporary memory, even for long buffers. */
class InPlaceAllToAllTest {
  /** All ranks on one host, each on its own, or two on one host and one on another. */
  private enum Placement {
    TOGETHER,
    APART,
    MIXED
  }

  @TempDir Path folder;

  private static long directBytes() {
    return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
        .filter(pool -> pool.getName().equals("direct"))
        .mapToLong(BufferPoolMXBean::getMemoryUsed)
        .sum();
  }

  private RankGang gang(Placement placement, int nranks) {
    return RankGang.open(
        Hosts.factory(
            folder,
            (rank, all) ->
                switch (placement) {
                  case TOGETHER -> 0;
                  case APART -> rank;
                  case MIXED -> rank / 2;
                }),
        nranks,
        Duration.ofSeconds(90));
  }

  /** Each rank chooses on its own whether it sends from the buffer that it receives into. */
  @ParameterizedTest
  @CsvSource({"TOGETHER, 2", "TOGETHER, 3", "APART, 2", "APART, 3", "MIXED, 3"})
  void someRanksUseOneBuffer(Placement placement, int nranks) {
    try (RankGang gang = gang(placement, nranks)) {
      for (long part : new long[] {4_000_003, 0, 1}) {
        gang.run(communicator -> allToAll(communicator, part));
      }
    }
  }

  private static void allToAll(Communicator communicator, long part) {
    int me = communicator.rank();
    long bytes = communicator.nranks() * part;
    TypedBuffer send = CommunicatorContract.buffer(DataType.INT8, bytes);
    boolean inPlace = me % 2 == 0;
    TypedBuffer receive = inPlace ? send : CommunicatorContract.buffer(DataType.INT8, bytes);
    Values.fill(send, i -> value(me, i));
    communicator.run(new AllToAll(send, receive));
    Values.check("rank " + me, receive, i -> value((int) (i / part), me * part + i % part));
  }

  @ParameterizedTest
  @CsvSource({"TOGETHER, 2", "TOGETHER, 3", "APART, 2", "MIXED, 3"})
  void temporaryMemoryIsBounded(Placement placement, int nranks) {
    long part = 4_000_003;
    List<TypedBuffer> buffers = new ArrayList<>();
    for (int rank = 0; rank < nranks; rank++) {
      ByteBuffer memory = ByteBuffer.allocateDirect((int) (nranks * part));
      TypedBuffer buffer = TypedBuffer.wrap(memory, DataType.INT8);
      int me = rank;
      Values.fill(buffer, i -> value(me, i));
      buffers.add(buffer);
    }
    try (RankGang gang = gang(placement, nranks)) {
      long before = directBytes();
      gang.run(
          communicator -> {
            TypedBuffer buffer = buffers.get(communicator.rank());
            communicator.run(new AllToAll(buffer, buffer));
          });
      long temporary = nranks * (PairwiseCollectives.TEMPORARY_BYTES + (1 << 20));
      assertThat(directBytes() - before).isLessThan(temporary);
    }
    for (int rank = 0; rank < nranks; rank++) {
      long first = rank * part;
      Values.check(
          "rank " + rank, buffers.get(rank), i -> value((int) (i / part), first + i % part));
    }
  }

  private static byte value(int rank, long index) {
    return (byte) (index * 31 + rank * 7 + index / 251);
  }
}
