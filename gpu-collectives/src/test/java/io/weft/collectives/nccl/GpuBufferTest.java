package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.awaitility.Awaitility.await;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.GpuBuffer;
import io.weft.collectives.GpuBufferCounters;
import io.weft.collectives.GpuCommunicator;
import io.weft.collectives.RaggedExchange;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.host.HostCommunicators;
import io.weft.collectives.host.HostOptions;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.collectives.nccl.CommunicatorWindows.Registration;
import io.weft.collectives.nccl.DeviceArena.Segment;
import io.weft.device.Event;
import io.weft.device.HostEvent;
import io.weft.memory.Memory;
import io.weft.memory.SettingNames;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Buffers of all ranks in GPU memory, and the arena that keeps it between communicators. */
@UsesGpu
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
    GpuDoubles.assumeRanks(nranks);
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
    TestMachine.assertClean();
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
      assertThat(arena(0).statistics()).isEqualTo(new GpuBufferCounters(1, SEGMENT, 0, SEGMENT, 0));
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
          .isEqualTo(new GpuBufferCounters(6, 2 * SEGMENT, 4 * SEGMENT, 0, 2 * SEGMENT));
      arena(rank).freeIdle(Duration.ofHours(1));
      assertThat(arena(rank).statistics().idleBytes()).isEqualTo(2 * SEGMENT);
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

  /** What closed buffers have left counts as room, also for a buffer of another length. */
  @Test
  void closedBuffersMakeRoomForALargerOne() {
    try (RankGang gang = gang(2)) {
      gang.run(
          communicator -> {
            GpuBuffer first = longs(communicator, 5 * MIB / 8);
            first.write(onHost(7, 7), 0);
            first.close();
            GpuBuffer second = longs(communicator, 7 * MIB / 8);
            second.write(onHost(communicator.rank()), 5);
            communicator.allReduce(second.elements(), ReduceOp.SUM);
            assertThat(read(second, 7, 0)).containsExactly(0L, 0L, 0L, 0L, 0L, 1L, 0L);
          });
      assertThat(arena(0).statistics().usedBytes()).isEqualTo(8 * MIB);
    }
  }

  private static long exchangedBytes(RaggedExchange exchange, long bytes) {
    TypedBuffer send = TypedBuffer.wrap(ByteBuffer.allocateDirect((int) bytes), DataType.INT64);
    return exchange.exchange(send, bytes / 8).bytes();
  }

  @Test
  void anExchangeGrowsToTheLimitAndWorksAfterARefusal() {
    try (RankGang gang = gang(1)) {
      gang.run(
          communicator -> {
            try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1)) {
              assertThat(exchangedBytes(exchange, 6 * MIB)).isEqualTo(6 * MIB);
              assertThat(exchangedBytes(exchange, 7 * MIB)).isEqualTo(7 * MIB);
              assertThatThrownBy(() -> exchangedBytes(exchange, 9 * MIB))
                  .hasMessageContaining("exceed collectivesGpuMemory of 8.0 MiB");
              assertThat(exchangedBytes(exchange, MIB)).isEqualTo(MIB);
            }
          });
    }
  }

  @Test
  void anExchangeWithoutMemoryForBuffersUsesTheHost() {
    HostCommunicators hosts = new HostCommunicators(HostOptions.defaults().withFolder(folder));
    try (RankGang gang = RankGang.open(GpuDoubles.factory(hosts), 1, LONG)) {
      gang.run(
          communicator -> {
            assertThat(((GpuCommunicator) communicator).hasBuffers()).isFalse();
            assertThatThrownBy(() -> longs(communicator, 1)).hasMessageContaining("have no memory");
            try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1)) {
              TypedBuffer received = exchange.exchange(onHost(4, 5), 2);
              assertThat(Memory.getLong(received.address() + 8)).isEqualTo(5);
            }
          });
    }
  }

  /** The host would read an address of the GPU, which ends the process. */
  @Test
  void communicatorsOfHostsRefuseMemoryOfGpus() {
    try (RankGang gang = gang(1);
        RankGang local = RankGang.open(LocalCommunicator::create, 1, LONG)) {
      List<GpuBuffer> buffers = gang.ask(communicator -> longs(communicator, 3));
      TypedBuffer elements = buffers.get(0).elements().slice(1, 2);
      Communicator host = local.rank(0);
      for (ThrowingCallable each :
          List.<ThrowingCallable>of(
              () -> host.allReduce(elements, ReduceOp.SUM),
              () -> host.record(ranks -> ranks.allReduce(elements, ReduceOp.SUM)))) {
        assertThatThrownBy(each)
            .hasMessageContaining("is memory of a GPU")
            .isInstanceOfSatisfying(
                CollectiveException.class, e -> assertThat(e.kind()).isEqualTo(Kind.INVALID));
      }
      host.barrier();
    }
  }

  /** Memory of the test, which notes who uses it. */
  private record Noting(TypedBuffer memory, List<Event> uses) implements BufferOwner {
    @Override
    public long address() {
      assertThat(uses).allMatch(each -> each.state() == Event.State.PENDING);
      return memory.address();
    }

    @Override
    public long bytes() {
      return memory.bytes();
    }

    @Override
    public void usedUntil(Event event) {
      uses.add(event);
    }
  }

  @Test
  void copiesHoldBothBuffersUntilTheyEnd() {
    try (RankGang gang = gang(1)) {
      gang.run(
          communicator -> {
            GpuBuffer buffer = longs(communicator, 10);
            Noting owner = new Noting(onHost(3, 4), new ArrayList<>());
            buffer.write(TypedBuffer.of(owner, 0, DataType.INT64, 2), 8);
            assertThat(owner.uses).hasSize(1);
            assertThat(owner.uses.get(0).state()).isEqualTo(Event.State.COMPLETE);
            assertThat(read(buffer, 2, 8)).containsExactly(3L, 4L);
            owner.uses.clear();
            TypedBuffer target = TypedBuffer.of(owner, 0, DataType.INT64, 2);
            buffer.close();
            assertThatThrownBy(() -> buffer.read(target, 0)).hasMessageContaining("was freed");
            assertThat(owner.uses).allMatch(each -> each.state() == Event.State.COMPLETE);
          });
    }
  }

  /** Work on another stream may go on after the communicator. */
  @Test
  void memoryInUseIsNotReusedAfterTheCommunicator() {
    HostEvent use = new HostEvent("work on another stream");
    try (RankGang gang = gang(1)) {
      List<GpuBuffer> buffers = gang.ask(communicator -> longs(communicator, 10));
      buffers.get(0).elements().owner().usedUntil(use);
    }
    assertThat(arena(0).statistics()).isEqualTo(new GpuBufferCounters(1, SEGMENT, 0, SEGMENT, 0));
    use.complete();
    assertThat(arena(0).statistics()).isEqualTo(new GpuBufferCounters(1, SEGMENT, 0, 0, SEGMENT));
  }

  @Test
  void aRegistrationSaysWhyThereIsNoWindow() {
    TestMachine.assume(1);
    Segment segment = arena(0).take(SEGMENT);
    DeviceWindow window = new DeviceWindow(segment.memory(), ended -> {});
    Registration registered = new Registration(window, null);
    assertThat(registered.whyNoWindow()).isEmpty();
    window.unused();
    assertThat(registered.whyNoWindow().orElseThrow()).contains("NCCL cannot use windows");
    window.close();
    arena(0).giveBack(segment);
    CollectiveException refusal = CollectiveException.invalid("too old");
    assertThat(new Registration(null, refusal).whyNoWindow()).contains("too old");
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
                assertThat(failure)
                    .hasMessageContaining("rank 0 asks for 10 int64 on its GPU, but rank 2 for 11");
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
    await()
        .untilAsserted(
            () ->
                assertThat(arena(0).statistics())
                    .isEqualTo(new GpuBufferCounters(1, SEGMENT, 0, 0, 0)));
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
