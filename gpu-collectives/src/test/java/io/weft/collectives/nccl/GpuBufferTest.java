package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.RaggedExchange;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.device.DoubleLibraries;
import io.weft.device.UsesDoubles;
import io.weft.memory.Memory;
import io.weft.memory.SettingNames;
import io.weft.testgpus.TestMachine;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers of all ranks in GPU memory, and the arena that keeps it between communicators. */
@UsesDoubles
class GpuBufferTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final long MIB = 1L << 20;
  private static final long SEGMENT = 2 * MIB;

  @TempDir Path folder;

  /** One arena for each GPU, as each executor has one. */
  private final Map<Integer, DeviceArena> arenas = new ConcurrentHashMap<>();

  private DeviceArena arena(int rank) {
    return arenas.computeIfAbsent(rank, gpu -> open(gpu, 8 * MIB));
  }

  private static DeviceArena open(int gpu, long budget) {
    return DeviceArena.open(
        GpuDoubles.device(gpu), TestMachine.options(), budget, SettingNames.OWN);
  }

  private RankGang gang(int nranks) {
    HostCommunicators hosts = new HostCommunicators(HostOptions.defaults().withFolder(folder));
    TestMachine.assume(nranks);
    CommunicatorFactory factory =
        (bootstrap, options) ->
            new NcclCommunicators(
                    TestMachine.options(),
                    NcclOptions.on(GpuDoubles.device(bootstrap.rank()))
                        .withLinger(Duration.ofMillis(500))
                        .withArena(arena(bootstrap.rank())),
                    hosts)
                .create(bootstrap, options);
    return RankGang.open(factory, nranks, LONG);
  }

  @AfterEach
  void nothingIsLeaked() {
    arenas.values().forEach(DeviceArena::close);
    GpuDoubles.closeDevices();
    DoubleLibraries.assertClean();
  }

  private static GpuBuffer longs(Communicator communicator, long count) {
    return ((GpuCommunicator) communicator).onDevice(DataType.INT64, count);
  }

  private static TypedBuffer onHost(long... values) {
    TypedBuffer host =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(8 * values.length), DataType.INT64);
    for (int i = 0; i < values.length; i++) {
      Memory.putLong(host.address() + 8L * i, values[i]);
    }
    return host;
  }

  private static List<Long> read(GpuBuffer buffer, int count, long first) {
    TypedBuffer host = onHost(new long[count]);
    buffer.read(host, first);
    List<Long> values = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      values.add(Memory.getLong(host.address() + 8L * i));
    }
    return values;
  }

  @Test
  void collectivesRunInWindows() {
    int n = 3;
    try (RankGang gang = gang(n)) {
      gang.run(
          communicator -> {
            int rank = communicator.rank();
            GpuBuffer sum = longs(communicator, 1000);
            assertThat(sum.whyNoWindow()).isEmpty();
            assertThat(read(sum, 1000, 0)).containsOnly(0L);
            sum.write(onHost(rank + 1, -rank), 998);
            communicator.allReduce(sum.elements(), ReduceOp.SUM);
            assertThat(read(sum, 3, 997)).containsExactly(0L, 6L, -3L);

            GpuBuffer all = longs(communicator, n);
            all.write(onHost(10 + rank), rank);
            communicator.allGather(all.elements().slice(rank, 1), all.elements());
            assertThat(read(all, n, 0)).containsExactly(10L, 11L, 12L);

            GpuBuffer part = longs(communicator, 1);
            communicator.reduceScatter(all.elements(), part.elements(), ReduceOp.SUM);
            assertThat(read(part, 1, 0)).containsExactly(3L * (10 + rank));

            communicator.broadcast(part.elements(), 2);
            assertThat(read(part, 1, 0)).containsExactly(36L);
          });
      assertThat(arena(0).statistics())
          .isEqualTo(new DeviceArena.Counters(1, SEGMENT, 0, SEGMENT, 0));
    }
    assertThat(arena(0).statistics().idleBytes()).isEqualTo(SEGMENT);
  }

  /** Stages ask for the same buffers; what one wrote, the next does not find. */
  @Test
  void laterCommunicatorsUseTheMemoryOfTheFirst() {
    int n = 2;
    for (int stage = 0; stage < 3; stage++) {
      try (RankGang gang = gang(n)) {
        gang.run(
            communicator -> {
              GpuBuffer small = longs(communicator, 5);
              GpuBuffer large = longs(communicator, SEGMENT / 8);
              assertThat(read(small, 5, 0)).containsOnly(0L);
              assertThat(read(large, 5, 1234)).containsOnly(0L);
              small.write(onHost(1, 2, 3, 4, 5), 0);
              large.write(onHost(1, 2, 3), 1234);
            });
      }
    }
    for (int rank = 0; rank < n; rank++) {
      assertThat(arena(rank).statistics())
          .isEqualTo(new DeviceArena.Counters(6, 2 * SEGMENT, 4 * SEGMENT, 0, 2 * SEGMENT));
      arena(rank).freeIdle(Duration.ZERO);
      assertThat(arena(rank).statistics().idleBytes()).isZero();
    }
  }

  /** The bytes of a buffer are used again when all ranks have closed it, at the same place. */
  @Test
  void closedBuffersMakeRoom() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            GpuBuffer first = longs(communicator, SEGMENT / 8);
            TypedBuffer elements = first.elements();
            long address = elements.address();
            first.write(onHost(7, 7), 5);
            if (communicator.rank() == 0) {
              first.close();
            }
            GpuBuffer second = longs(communicator, SEGMENT / 8);
            assertThat(second.elements().address()).isNotEqualTo(address);
            first.close();
            assertThatThrownBy(() -> communicator.allReduce(elements, ReduceOp.SUM))
                .hasMessageContaining("was freed");
            assertThatThrownBy(() -> first.write(onHost(1), 0))
                .isInstanceOfSatisfying(
                    CollectiveException.class, e -> assertThat(e.kind()).isEqualTo(Kind.INVALID));
            GpuBuffer third = longs(communicator, SEGMENT / 8);
            assertThat(third.elements().address()).isEqualTo(address);
            assertThat(read(third, 9, 0)).containsOnly(0L);
          });
      assertThat(arena(0).statistics().windows()).isEqualTo(2);
    }
  }

  private static List<CollectiveException> failures(
      RankGang gang, Function<Communicator, GpuBuffer> request) {
    return gang.ask(
        communicator ->
            catchThrowableOfType(
                CollectiveException.class, () -> request.apply(communicator).close()));
  }

  @Test
  void differentBuffersAreRefusedOnAllRanks() {
    try (RankGang gang = gang(3)) {
      assertThat(failures(gang, each -> longs(each, each.rank() == 2 ? 11 : 10)))
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.MISMATCH);
                assertThat(failure.ranks()).containsExactly(2);
              });
      assertThat(failures(gang, each -> longs(each, each.rank() == 1 ? -1 : 10)))
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.INVALID);
                assertThat(failure).hasMessageContaining("rank 1 asks for -1 int64");
              });
      gang.run(communicator -> assertThat(read(longs(communicator, 3), 3, 0)).containsOnly(0L));
    }
  }

  @Test
  void aRankWithoutRoomIsNamedAndTheOthersKeepNothing() {
    TestMachine.assume(2);
    arenas.put(1, open(1, SEGMENT));
    try (RankGang gang = gang(2)) {
      assertThat(failures(gang, each -> longs(each, MIB)))
          .allSatisfy(
              failure -> {
                assertThat(failure.kind()).isEqualTo(Kind.INVALID);
                assertThat(failure.ranks()).containsExactly(1);
                assertThat(failure)
                    .hasMessageContaining("rank 1 has no memory: 8.0 MiB more on cuda:1")
                    .hasMessageContaining("exceed collectivesGpuMemory of 2.0 MiB");
              });
      assertThat(arena(0).statistics().usedBytes()).isZero();
      gang.run(communicator -> assertThat(read(longs(communicator, 3), 3, 0)).containsOnly(0L));
    }
  }

  /** A peer that is slow to notice the failure may still write to the memory. */
  @Test
  void memoryOfABrokenCommunicatorIsNotUsedAgain() {
    try (RankGang gang = gang(2)) {
      List<GpuBuffer> buffers = gang.ask(communicator -> longs(communicator, 10));
      gang.run(
          communicator -> {
            communicator.abort("for the test");
            assertThatThrownBy(() -> read(buffers.get(communicator.rank()), 1, 0))
                .isInstanceOf(CollectiveException.class);
          });
    }
    assertThat(arena(0).statistics()).isEqualTo(new DeviceArena.Counters(1, SEGMENT, 0, 0, 0));
  }

  /** A task may read its result after another one has ended. */
  @Test
  void copiesNeedNoOtherRank() {
    try (RankGang gang = gang(2)) {
      List<GpuBuffer> buffers = gang.ask(communicator -> longs(communicator, 10));
      gang.run(
          communicator -> {
            communicator.allReduce(buffers.get(communicator.rank()).elements(), ReduceOp.SUM);
            if (communicator.rank() == 0) {
              communicator.close();
            }
          });
      gang.run(
          communicator -> {
            if (communicator.rank() == 1) {
              buffers.get(1).write(onHost(4), 9);
              assertThat(read(buffers.get(1), 2, 8)).containsExactly(0L, 4L);
            }
          });
    }
  }

  @Test
  void copiesOutOfRangeOrOfAnotherTypeAreRefused() {
    try (RankGang gang = gang(1)) {
      gang.run(
          communicator -> {
            GpuBuffer buffer = longs(communicator, 10);
            assertThatThrownBy(() -> buffer.write(onHost(1, 2), 9))
                .isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> buffer.read(onHost(1).as(DataType.INT32), 0))
                .hasMessageContaining("a copy of int64 to int32");
            buffer.write(onHost(), 10);
            GpuBuffer none = longs(communicator, 0);
            assertThat(none.elements().count()).isZero();
            GpuBuffer other = longs(communicator, 10);
            buffer.write(onHost(5), 3);
            other.write(buffer.elements(), 0);
            assertThat(read(other, 5, 0)).containsExactly(0L, 0L, 0L, 5L, 0L);
          });
    }
  }

  /** Rows whose numbers only the senders know; rank r sends r + 1 rows to each. */
  @Test
  void raggedExchangeUsesGpuMemory() {
    int n = 3;
    try (RankGang gang = gang(n)) {
      gang.run(
          communicator -> {
            int rows = communicator.rank() + 1;
            GpuBuffer send = longs(communicator, 9);
            send.write(onHost(100 * rows), 0);
            try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1)) {
              TypedBuffer received =
                  exchange.exchange(send.elements().slice(0, n * rows), rows, rows, rows);
              assertThat(received.count()).isEqualTo(6);
              assertThat(GpuDoubles.device(communicator.rank()).isDeviceMemory(received.address()))
                  .isTrue();
              GpuBuffer copy = longs(communicator, 6);
              copy.write(received, 0);
              List<Long> expected =
                  communicator.rank() == 0
                      ? List.of(100L, 200L, 0L, 300L, 0L, 0L)
                      : List.of(0L, 0L, 0L, 0L, 0L, 0L);
              assertThat(read(copy, 6, 0)).isEqualTo(expected);
            }
          });
    }
  }
}
