package io.weft.collectives.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.BufferOwner;
import io.weft.collectives.CollectiveException;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.RaggedExchange;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.contract.RankGang;
import io.weft.memory.Memory;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class RaggedExchangeTest {
  @TempDir Path folder;

  private RankGang gang(int nranks, int hosts) {
    List<CommunicatorFactory> factories =
        IntStream.range(0, nranks)
            .mapToObj(
                rank ->
                    HostOptions.defaults()
                        .withFolder(folder.resolve("host-" + rank % hosts))
                        .withHostIdentity("host-" + rank % hosts))
            .<CommunicatorFactory>map(HostCommunicators::new)
            .toList();
    return RankGang.open(factories, Duration.ofSeconds(60));
  }

  /** Random numbers of rows, among them none at all and many for one rank. */
  @ParameterizedTest
  @CsvSource({"1,1,1", "2,1,3", "4,1,1", "3,1,100", "3,2,2"})
  void rowsArriveByTheRankOfTheirSender(int nranks, int hosts, int rowElements) {
    try (RankGang gang = gang(nranks, hosts)) {
      gang.run(
          communicator -> {
            try (RaggedExchange exchange =
                new RaggedExchange(communicator, DataType.INT64, rowElements)) {
              for (int round = 0; round < 12; round++) {
                check(communicator, exchange, rowElements, round);
              }
            }
          });
    }
  }

  /** Trap: an operator runs with the contents that another left in its scratch memory. */
  @Test
  void twoExchangesThatAlternateKeepTheirOwnScratch() {
    try (RankGang gang = gang(2, 1)) {
      gang.run(
          communicator -> {
            try (RaggedExchange one = new RaggedExchange(communicator, DataType.INT64, 1);
                RaggedExchange two = new RaggedExchange(communicator, DataType.INT64, 1)) {
              for (int i = 0; i < 25; i++) {
                TypedBuffer first = exchangeOne(one, 1000 + i);
                TypedBuffer second = exchangeOne(two, 2000 + i);
                for (int from = 0; from < 2; from++) {
                  assertThat(Memory.getLong(first.address() + 8L * from)).isEqualTo(1000 + i);
                  assertThat(Memory.getLong(second.address() + 8L * from)).isEqualTo(2000 + i);
                }
              }
            }
          });
    }
  }

  /** Trap: numbers that grow a little each time would take fresh memory each time. */
  @Test
  void growingNumbersTakeFewScratches() {
    try (RankGang gang = gang(2, 1)) {
      gang.run(
          communicator -> {
            Set<BufferOwner> scratches = Collections.newSetFromMap(new IdentityHashMap<>());
            TypedBuffer send =
                TypedBuffer.wrap(ByteBuffer.allocateDirect(8 * 1000), DataType.INT64);
            try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1)) {
              for (int rows = 400; rows < 500; rows++) {
                scratches.add(exchange.exchange(send, rows, rows).owner());
              }
            }
            assertThat(scratches).hasSize(2);
          });
    }
  }

  @Test
  void wrongNumbersOfOneRankAreAnErrorOnAll() {
    try (RankGang gang = gang(3, 1)) {
      gang.run(
          communicator -> {
            TypedBuffer send = TypedBuffer.wrap(ByteBuffer.allocateDirect(24), DataType.INT64);
            try (RaggedExchange exchange = new RaggedExchange(communicator, DataType.INT64, 1)) {
              long[] rows = communicator.rank() == 1 ? new long[] {3, 1} : new long[] {1, 1, 1};
              assertThatThrownBy(() -> exchange.exchange(send, rows))
                  .isInstanceOfSatisfying(
                      CollectiveException.class,
                      refused -> assertThat(refused.ranks()).containsExactly(1));
              assertThat(exchange.exchange(send, 1, 1, 1).count()).isEqualTo(3);
            }
          });
    }
  }

  private static TypedBuffer exchangeOne(RaggedExchange exchange, long value) {
    TypedBuffer send = TypedBuffer.wrap(ByteBuffer.allocateDirect(16), DataType.INT64);
    Memory.putLong(send.address(), value);
    Memory.putLong(send.address() + 8, value);
    return exchange.exchange(send, 1, 1);
  }

  private static long[] rows(int from, int nranks, int round) {
    SplittableRandom random = new SplittableRandom(1000L * round + from);
    int most = round % 4 == 0 ? 1 : round % 4 == 3 ? 3000 : 20;
    return IntStream.range(0, nranks)
        .mapToLong(to -> round % 4 == 3 && to != round % nranks ? 0 : random.nextInt(most))
        .toArray();
  }

  private static long value(int from, int to, int round, long element) {
    return ((from * 10L + to) * 100 + round) * 1_000_000 + element;
  }

  private static void check(
      Communicator communicator, RaggedExchange exchange, int rowElements, int round) {
    int me = communicator.rank();
    int n = communicator.nranks();
    long[] rows = rows(me, n, round);
    int elements = (int) IntStream.range(0, n).mapToLong(to -> rows[to] * rowElements).sum();
    TypedBuffer send =
        TypedBuffer.wrap(ByteBuffer.allocateDirect(8 * (elements + rowElements)), DataType.INT64);
    long at = send.address();
    for (int to = 0; to < n; to++) {
      for (long element = 0; element < rows[to] * rowElements; element++, at += 8) {
        Memory.putLong(at, value(me, to, round, element));
      }
    }
    TypedBuffer received = exchange.exchange(send, rows);
    long here = received.address();
    for (int from = 0; from < n; from++) {
      long expected = rows(from, n, round)[me];
      assertThat(exchange.receivedRows(from)).isEqualTo(expected);
      for (long element = 0; element < expected * rowElements; element++, here += 8) {
        assertThat(Memory.getLong(here)).isEqualTo(value(from, me, round, element));
      }
    }
    assertThat(here).isEqualTo(received.address() + received.bytes());
    assertThatThrownBy(
            () ->
                exchange.exchange(
                    send.slice(0, 0), IntStream.range(0, n).mapToLong(i -> 1).toArray()))
        .hasMessageContaining("rank " + me + " cannot exchange");
  }
}
