package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.AllReduce;
import io.weft.collectives.AllToAll;
import io.weft.collectives.Broadcast;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.Gather;
import io.weft.collectives.Operation;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.Receive;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.Scatter;
import io.weft.collectives.Send;
import io.weft.collectives.SymmetricBuffer;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.CommunicatorContract;
import io.weft.collectives.contract.GuardedBuffer;
import io.weft.collectives.contract.RaggedContract;
import io.weft.collectives.contract.RankGang;
import io.weft.collectives.contract.Values;
import io.weft.collectives.host.HostCommunicators.HostSetup;
import io.weft.collectives.host.HostCommunicators.HostSetup.HostIdentity;
import io.weft.collectives.host.HostCommunicators.HostSetup.RankAddress;
import io.weft.collectives.host.HostOptions.BufferSizes;
import io.weft.collectives.host.HostOptions.KernelCopy;
import io.weft.collectives.host.ProcessMemory.Location;
import io.weft.logging.CapturedLogs;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.LongToDoubleFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Tests operations on private buffers with and without copies by the kernel. */
class KernelCopyTest {
  private static final DataType TYPE = DataType.FLOAT32;

  /** An address that no process maps. */
  private static final long UNMAPPED = 64;

  @TempDir Path folder;

  private RankGang gang(int nranks, KernelCopy ofAll) {
    return gang(nranks, rank -> ofAll);
  }

  private RankGang gang(int nranks, IntFunction<KernelCopy> byRank) {
    List<CommunicatorFactory> factories =
        IntStream.range(0, nranks)
            .mapToObj(
                rank ->
                    HostOptions.defaults()
                        .withFolder(folder.resolve("shm"))
                        .withKernelCopy(byRank.apply(rank)))
            .<CommunicatorFactory>map(HostCommunicators::new)
            .toList();
    return RankGang.open(factories, Duration.ofSeconds(60));
  }

  /** Sizes around the limits of one shot, of reads by the kernel, of slots, chunks and stages. */
  @ParameterizedTest
  @CsvSource({
    "2, ALWAYS",
    "3, ALWAYS",
    "4, ALWAYS",
    "2, MEASURED",
    "2, NEVER",
    "3, NEVER",
    "4, NEVER"
  })
  void everyOperationIsRightAroundTheLimits(int nranks, KernelCopy kernelCopy) {
    try (RankGang gang = gang(nranks, kernelCopy)) {
      gang.run(
          communicator -> {
            for (int limit : new int[] {1 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20}) {
              for (int over = -1; over <= 1; over++) {
                everyOperation(communicator, limit / Float.BYTES + over);
                everyOperation(communicator, limit / Float.BYTES / nranks + over);
              }
            }
            long byKernel = communicator.metrics().total(Algorithm.KERNEL_COPY).calls();
            assertThat(byKernel > 0).isEqualTo(kernelCopy != KernelCopy.NEVER);
          });
    }
  }

  /** More than two ranks that take turns on processors read a quarter MiB by the kernel. */
  @ParameterizedTest
  @CsvSource({"3, 262143", "4, 262144"})
  void anAllToAllIsStagedUnlessItIsLargeForTheProcessors(int nranks, int bytes) {
    boolean byKernel = Runtime.getRuntime().availableProcessors() < nranks;
    try (RankGang gang = gang(nranks, KernelCopy.ALWAYS)) {
      gang.run(
          communicator -> {
            TypedBuffer send = CommunicatorContract.buffer(DataType.INT8, bytes);
            TypedBuffer receive = CommunicatorContract.buffer(DataType.INT8, bytes);
            communicator.run(new AllToAll(send, receive));
            Algorithm way = byKernel ? Algorithm.KERNEL_COPY : Algorithm.STAGED;
            assertThat(communicator.metrics().total(way).calls()).isEqualTo(1);
          });
    }
  }

  /** Both choose the same, and the measurement is no operation of the metrics. */
  @ParameterizedTest
  @CsvSource({"MEASURED, MEASURED", "MEASURED, ALWAYS", "ALWAYS, ALWAYS", "ALWAYS, NEVER"})
  void twoRanksAgreeOnTheWayOfLargeData(KernelCopy first, KernelCopy second) {
    try (RankGang gang = gang(2, rank -> rank == 0 ? first : second)) {
      List<Long> byKernel =
          gang.ask(
              communicator -> {
                for (int round = 0; round < 3; round++) {
                  swap(communicator, 1 << 20);
                  gather(communicator, 1 << 20);
                }
                long kernel = communicator.metrics().total(Algorithm.KERNEL_COPY).calls();
                long staged = communicator.metrics().total(Algorithm.STAGED).calls();
                assertThat(kernel + staged).isEqualTo(6);
                swap(communicator, 48 << 10);
                gather(communicator, 48 << 10);
                assertThat(communicator.metrics().total(Algorithm.ONE_SHOT).calls()).isEqualTo(2);
                return kernel;
              });
      assertThat(byKernel.get(0)).isIn(0L, 6L).isEqualTo(byKernel.get(1));
      if (second == KernelCopy.NEVER || first == second && first == KernelCopy.ALWAYS) {
        assertThat(byKernel.get(0)).isEqualTo(second == KernelCopy.NEVER ? 0 : 6);
      }
    }
  }

  private static void swap(Communicator communicator, long bytes) {
    long count = bytes / TYPE.bytes();
    int me = communicator.rank();
    TypedBuffer received = mine(0, count);
    communicator.run(new AllToAll(mine(me, count), received));
    long part = count / 2;
    Values.check("swap", received, i -> Values.of((int) (i / part), me * part + i % part));
  }

  private static void gather(Communicator communicator, long bytes) {
    long part = bytes / TYPE.bytes() / 2;
    TypedBuffer received = mine(0, 2 * part);
    communicator.run(new AllGather(mine(communicator.rank(), part), received));
    Values.check("gather", received, i -> Values.of((int) (i / part), i % part));
  }

  /** Operations on private buffers of one rank and symmetric ones of the other, in all mixtures. */
  @ParameterizedTest
  @EnumSource
  void symmetricAndPrivateBuffersOfTwoRanksMix(KernelCopy kernelCopy) {
    long part = 30_000;
    try (RankGang gang = gang(2, kernelCopy)) {
      gang.run(
          communicator -> {
            int me = communicator.rank();
            SymmetricBuffer sends = communicator.symmetric(TYPE, 2 * part);
            SymmetricBuffer receives = communicator.symmetric(TYPE, 2 * part);
            for (int mixture = 0; mixture < 16; mixture++) {
              int mine = mixture >> 2 * me;
              TypedBuffer send = (mine & 1) == 0 ? mine(me, 2 * part) : sends.elements();
              TypedBuffer receive = (mine & 2) == 0 ? mine(0, 2 * part) : receives.elements();
              Values.fill(send, me);
              communicator.run(new AllGather(send.slice(0, part), receive));
              Values.check(
                  "gather " + mixture, receive, i -> Values.of((int) (i / part), i % part));
              communicator.run(new AllToAll(send, receive));
              Values.check(
                  "swap " + mixture,
                  receive,
                  i -> Values.of((int) (i / part), me * part + i % part));
              long[] halves = {part, part};
              long[] offsets = {0, part};
              long[] targets = {me * part, me * part};
              Values.fill(receive, i -> 9);
              communicator.raggedAllToAll(
                  send, receive, new RaggedLayout(1, offsets, halves, targets, halves));
              Values.check(
                  "rows " + mixture,
                  receive,
                  i -> Values.of((int) (i / part), me * part + i % part));
            }
          });
    }
  }

  /** The measurement goes through stages of 256 elements, or of more than a large operation. */
  @ParameterizedTest
  @CsvSource({"128, 1024", "1048576, 4194304"})
  void twoRanksMeasureWithBuffersOfAnySize(int slotBytes, int stageBytes) {
    HostOptions options =
        HostOptions.defaults()
            .withFolder(folder.resolve("shm"))
            .withSizes(new BufferSizes(slotBytes, stageBytes, 128));
    try (RankGang gang = RankGang.open(new HostCommunicators(options), 2, Duration.ofSeconds(60))) {
      gang.run(
          communicator -> {
            for (int round = 0; round < 2; round++) {
              gather(communicator, 600 << 10);
              swap(communicator, 600 << 10);
              gather(communicator, 100 << 10);
              swap(communicator, 100 << 10);
            }
          });
    }
  }

  /** The measurement runs within a group, whose messages progress while it waits. */
  @Test
  void twoRanksMeasureWhileMessagesAreOnTheirWay() {
    try (RankGang gang = gang(2, KernelCopy.MEASURED)) {
      gang.run(
          communicator -> {
            int me = communicator.rank();
            long count = 100_000;
            TypedBuffer message = mine(0, count);
            TypedBuffer swapped = mine(0, count);
            communicator.runGroup(
                List.of(
                    new Send(mine(me, count), 1 - me),
                    new AllToAll(mine(me, count), swapped),
                    new Receive(message, 1 - me)));
            Values.check("message", message, i -> Values.of(1 - me, i));
            long part = count / 2;
            Values.check("swap", swapped, i -> Values.of((int) (i / part), me * part + i % part));
          });
    }
  }

  @Test
  void anUnknownOptionOfARankIsNamed() throws Exception {
    RankAddress address =
        new RankAddress(
            "host", "process", new Location(1, 2), 3, KernelCopy.ALWAYS, "folder", "token");
    byte[] message = address.encode();
    assertThat(RankAddress.decode(message)).isEqualTo(address);
    message[message.length - "folder".length() - "token".length() - 2 * Short.BYTES - 1] = 'Z';
    assertThatThrownBy(() -> RankAddress.decode(message))
        .isInstanceOf(IOException.class)
        .hasMessage("a rank has option ALWAYZ of copies by the kernel");
  }

  /**
   * Two ranks without the kernel stage their rows, whose streams differ in length. By the kernel,
   * runs of 0 to 2 KB are messages, and runs of 200 KB are read.
   */
  @ParameterizedTest
  @CsvSource({"2, true", "2, false", "3, true", "4, true", "3, false"})
  void raggedRowsAreRight(int nranks, boolean allowed) {
    RaggedContract.Sizes sizes =
        (from, to, update) ->
            (update == 0 && from != 0 ? 50 : 5_600) * ((from * 7 + to * 3 + update * 5) % 4);
    try (RankGang gang = gang(nranks, allowed ? KernelCopy.ALWAYS : KernelCopy.NEVER)) {
      gang.run(
          communicator -> {
            for (int round = 0; round < 5; round++) {
              RaggedContract.exchange(communicator, TYPE, 3, 3, sizes);
            }
            long byKernel = communicator.metrics().total(Algorithm.KERNEL_COPY).calls();
            assertThat(byKernel).isEqualTo(allowed ? 5 : 0);
            long staged = communicator.metrics().total(Algorithm.STAGED).calls();
            assertThat(staged).isEqualTo(nranks == 2 && !allowed ? 5 : 0);
          });
    }
  }

  /** Elements of all types in more than one stage, the last of them not full. */
  @ParameterizedTest
  @ValueSource(ints = {2, 3})
  void stagesReduceAllTypes(int nranks) {
    try (RankGang gang = gang(nranks, KernelCopy.MEASURED)) {
      gang.run(
          communicator -> {
            for (DataType type : DataType.values()) {
              for (ReduceOp op : ReduceOp.values()) {
                reduceInStages(communicator, type, op, (600 << 10) / type.bytes() + 3);
              }
            }
            long each = (long) DataType.values().length * ReduceOp.values().length;
            assertThat(communicator.metrics().total(Algorithm.STAGED).calls()).isEqualTo(4 * each);
          });
    }
  }

  private static void reduceInStages(
      Communicator communicator, DataType type, ReduceOp op, long count) {
    int nranks = communicator.nranks();
    int me = communicator.rank();
    String what = type + " " + op;
    LongToDoubleFunction reduced = i -> Values.reduced(type, op, nranks, i);
    TypedBuffer data = CommunicatorContract.filled(communicator, type, count);
    TypedBuffer result = CommunicatorContract.buffer(type, count);
    communicator.run(new AllReduce(data, result, op));
    Values.check(what, result, reduced);
    TypedBuffer ofRoot = CommunicatorContract.buffer(type, me == 1 ? count : 0);
    communicator.run(new Reduce(data, ofRoot, op, 1));
    Values.check(what, ofRoot, reduced);
    TypedBuffer parts = CommunicatorContract.filled(communicator, type, count * nranks);
    TypedBuffer part = CommunicatorContract.buffer(type, count);
    communicator.run(new ReduceScatter(parts, part, op));
    Values.check(what, part, i -> Values.reduced(type, op, nranks, me * count + i));
    communicator.allReduce(data, op);
    Values.check(what + " in place", data, reduced);
  }

  private static void everyOperation(Communicator communicator, long count) {
    int nranks = communicator.nranks();
    int me = communicator.rank();
    int root = (int) (count % nranks);
    long all = count * nranks;
    compare(
        communicator,
        count,
        result -> new AllReduce(mine(me, count), result, ReduceOp.SUM),
        i -> Values.reduced(TYPE, ReduceOp.SUM, nranks, i));
    compare(
        communicator,
        count,
        result -> new ReduceScatter(mine(me, all), result, ReduceOp.SUM),
        i -> Values.reduced(TYPE, ReduceOp.SUM, nranks, me * count + i));
    compare(
        communicator,
        all,
        result -> new AllGather(mine(me, count), result),
        i -> Values.of((int) (i / count), i % count));
    compare(
        communicator,
        all,
        result -> new AllToAll(mine(me, all), result),
        i -> Values.of((int) (i / count), me * count + i % count));
    compare(
        communicator,
        count,
        result -> new Broadcast(mine(me, count), result, root),
        i -> Values.of(root, i));
    compare(
        communicator,
        count,
        result -> new Scatter(mine(me, me == root ? all : 0), result, root),
        i -> Values.of(root, me * count + i));
    compare(
        communicator,
        me == root ? all : 0,
        result -> new Gather(mine(me, count), result, root),
        i -> Values.of((int) (i / count), i % count));
    compare(
        communicator,
        me == root ? count : 0,
        result -> new Reduce(mine(me, count), result, ReduceOp.MAX, root),
        i -> Values.reduced(TYPE, ReduceOp.MAX, nranks, i));
    inPlace(communicator, count);
  }

  /** On one buffer; also on the even ranks only. */
  private static void inPlace(Communicator communicator, long count) {
    int nranks = communicator.nranks();
    int me = communicator.rank();
    TypedBuffer reduced = mine(me, count);
    communicator.allReduce(reduced, ReduceOp.MAX);
    Values.check("in place", reduced, i -> Values.reduced(TYPE, ReduceOp.MAX, nranks, i));
    TypedBuffer terms = mine(me, count);
    TypedBuffer sums = me % 2 == 0 ? terms : mine(0, count);
    communicator.run(new AllReduce(terms, sums, ReduceOp.SUM));
    Values.check("mixed", sums, i -> Values.reduced(TYPE, ReduceOp.SUM, nranks, i));
    TypedBuffer gathered = mine(0, count * nranks);
    TypedBuffer part = gathered.slice(me * count, count);
    Values.fill(part, me);
    communicator.run(new AllGather(part, gathered));
    Values.check("in place", gathered, i -> Values.of((int) (i / count), i % count));
    TypedBuffer parts = mine(me, count * nranks);
    TypedBuffer swapped = me % 2 == 0 ? parts : mine(0, count * nranks);
    communicator.run(new AllToAll(parts, swapped));
    Values.check("in place", swapped, i -> Values.of((int) (i / count), me * count + i % count));
  }

  private static TypedBuffer mine(int rank, long count) {
    TypedBuffer buffer = CommunicatorContract.buffer(TYPE, count);
    Values.fill(buffer, rank);
    return buffer;
  }

  /** Checks a result, and that no byte beside it was written. */
  private static void compare(
      Communicator communicator,
      long count,
      Function<TypedBuffer, Operation> operation,
      LongToDoubleFunction expected) {
    GuardedBuffer result = new GuardedBuffer(TYPE, count, 4);
    Operation run = operation.apply(result.buffer());
    communicator.run(run);
    Values.check(run.signature().toString(), result.buffer(), expected);
    result.check(run.signature().toString());
  }

  @Test
  void noRankReadsIfOneMayNotAndTheReasonIsLoggedOnce() {
    CapturedLogs.clear();
    HostSetup.LOGGED.clear();
    try (RankGang gang = gang(3, rank -> rank == 1 ? KernelCopy.NEVER : KernelCopy.MEASURED)) {
      gang.run(
          communicator -> {
            long count = 600_000;
            communicator.run(new AllToAll(mine(communicator.rank(), count), mine(0, count)));
            assertThat(communicator.metrics().total(Algorithm.PAIRWISE).calls()).isEqualTo(1);
          });
    }
    assertThat(CapturedLogs.lines())
        .filteredOn(line -> line.contains("rank 1 cannot read the memory of the others"))
        .singleElement()
        .asString()
        .contains("the options forbid it");
  }

  /** Rank 1 never touches its buffer: only the root reads it. */
  @Test
  void anAddressThatIsNotMappedIsAnErrorOfAllRanksAndNamesBoth() {
    try (RankGang gang = gang(3, KernelCopy.MEASURED)) {
      gang.run(
          communicator -> {
            int me = communicator.rank();
            TypedBuffer data = me == 1 ? TypedBuffer.at(UNMAPPED, TYPE, 100_000) : mine(0, 100_000);
            TypedBuffer all = mine(0, me == 0 ? 300_000 : 0);
            CollectiveException failure =
                catchThrowableOfType(
                    CollectiveException.class, () -> communicator.run(new Gather(data, all, 0)));
            assertThat(failure.kind()).isEqualTo(Kind.IO);
            assertThat(failure.ranks()).containsExactly(1);
            assertThat(failure.getMessage())
                .contains("rank 1 is not readable: rank 0 could not read 400000 bytes")
                .contains("gather", "the memory is not mapped");
          });
    }
  }

  @Test
  void probesRefuseOtherAndEndedProcesses() {
    ProcessMemory memory = new ProcessMemory();
    Location own = ProcessMemory.own(HostIdentity.PROCESS);
    assertThat(memory.refusal(own, HostIdentity.PROCESS)).isEmpty();
    assertThat(memory.refusal(own, UUID.randomUUID()).orElseThrow())
        .contains("process " + own.id() + " is another one");
    assertThat(
            memory
                .refusal(new Location(Integer.MAX_VALUE, own.probe()), HostIdentity.PROCESS)
                .orElseThrow())
        .contains("there is no such process");
    assertThat(memory.refusal(new Location(own.id(), UNMAPPED), HostIdentity.PROCESS).orElseThrow())
        .contains("the memory is not mapped");
  }
}
