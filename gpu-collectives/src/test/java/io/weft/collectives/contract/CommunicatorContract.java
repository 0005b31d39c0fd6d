package io.weft.collectives.contract;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.stream.IntStream;

/** The implementation under test, for the contracts that extend this one. */
public interface CommunicatorContract {
  /** Creates communicators of the implementation. */
  CommunicatorFactory factory();

  /** Opens a communicator of n ranks with a timeout that no healthy test reaches. */
  default RankGang gang(int nranks) {
    return RankGang.open(factory(), nranks, Duration.ofSeconds(60));
  }

  /** The numbers of ranks that every test runs with. */
  static IntStream rankCounts() {
    return IntStream.of(1, 2, 3, 4, 5, 8);
  }

  /** The numbers of ranks for tests that need several. */
  static IntStream severalRanks() {
    return IntStream.of(2, 3, 5);
  }

  /** A buffer that only the rank itself can reach. */
  static TypedBuffer buffer(DataType type, long count) {
    return TypedBuffer.wrap(ByteBuffer.allocateDirect(Math.toIntExact(count * type.bytes())), type);
  }

  /** A buffer filled with {@link Values#of}. */
  static TypedBuffer filled(Communicator communicator, DataType type, long count) {
    TypedBuffer buffer = buffer(type, count);
    Values.fill(buffer, communicator.rank());
    return buffer;
  }
}
