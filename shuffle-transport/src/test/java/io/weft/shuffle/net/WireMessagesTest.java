package io.weft.shuffle.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.shuffle.net.BlocksOpened.ChunkTable;
import io.weft.shuffle.net.OpenBlocks.BlockRange;
import io.weft.shuffle.net.OpenBlocks.BlocksRefused;
import io.weft.shuffle.net.OpenBlocks.StreamId;
import io.weft.shuffle.store.BlockKey;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Random;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;

class WireMessagesTest {
  private static final BlockKey KEY = new BlockKey(7, 11);
  private static final OpenBlocks REQUEST =
      new OpenBlocks(
          "cafe0123",
          1 << 20,
          0,
          100,
          true,
          Compression.NONE,
          List.of(new BlockRange(KEY, 2, 5), new BlockRange(new BlockKey(7, 12), 2, 5)));

  @Property(tries = 300)
  void everyRequestRoundTrips(@ForAll("requests") OpenBlocks request) throws Exception {
    assertThat(OpenBlocks.decode(request.encode())).isEqualTo(request);
  }

  @Property(tries = 300)
  void everyFittingAnswerRoundTrips(@ForAll("requests") OpenBlocks request, @ForAll long seed)
      throws Exception {
    BlocksOpened answer = answer(request, new Random(seed));
    BlocksOpened decoded = BlocksOpened.decode(answer.encode(), request);
    assertThat(decoded.encode()).isEqualTo(answer.encode());
    assertThat(decoded.stream()).isEqualTo(answer.stream());
    assertThat(decoded.totalBytes()).isEqualTo(answer.totalBytes());
    assertThat(decoded.complete()).isEqualTo(answer.complete());
  }

  @Property(tries = 100)
  void everyServiceMessageRoundTrips(@ForAll byte[] bytes) throws Exception {
    ByteBuffer message = new ServiceMessage(bytes).encode();
    assertThat(ServiceMessage.matches(message)).isTrue();
    assertThat(ServiceMessage.matches(REQUEST.encode())).isFalse();
    assertThat(ServiceMessage.decode(message).bytes()).isEqualTo(bytes);
    message.put(message.limit() - 1, (byte) (message.get(message.limit() - 1) + 1));
    assertThatThrownBy(() -> ServiceMessage.decode(message)).isInstanceOf(WireException.class);
  }

  @Property(tries = 200)
  void everyRefusalRoundTrips(
      @ForAll @IntRange(min = -1, max = 9) int range,
      @ForAll @IntRange(max = 60_000) int retry,
      @ForAll String reason)
      throws Exception {
    BlocksRefused refusal = new BlocksRefused(range, retry, reason);
    ByteBuffer bytes = refusal.encode();
    assertThat(BlocksRefused.matches(bytes)).isTrue();
    String seen = new String(refusal.reason().getBytes("UTF-8"), "UTF-8");
    assertThat(BlocksRefused.decode(bytes, 10)).isEqualTo(new BlocksRefused(range, retry, seen));
  }

  @Property(tries = 500)
  void garbageIsAlwaysAnError(@ForAll @Size(max = 300) byte[] garbage) {
    assertAllRefuse(ByteBuffer.wrap(garbage));
  }

  @Property(tries = 500)
  void garbageAfterAGoodHeaderIsAnErrorOrAValidMessage(
      @ForAll @Size(max = 300) byte[] garbage, @ForAll @IntRange(min = 1, max = 3) int type) {
    ByteBuffer bytes = MessageHeader.allocate((short) type, MessageHeader.BYTES + garbage.length);
    MessageHeader.finish(bytes.put(garbage));
    try {
      switch (type) {
        case 1 -> OpenBlocks.decode(bytes);
        case 2 ->
            assertThat(BlocksOpened.decode(bytes, REQUEST).totalBytes())
                .isLessThanOrEqualTo(1 << 20);
        default -> BlocksRefused.decode(bytes, 2);
      }
    } catch (WireException e) {
      assertThat(e.getMessage()).contains("message: ");
    }
  }

  @Property(tries = 500)
  void oneWrongNumberIsAnErrorOrAValidMessage(
      @ForAll("requests") OpenBlocks request,
      @ForAll long seed,
      @ForAll @IntRange(max = 1 << 20) int place,
      @ForAll int value) {
    ByteBuffer bytes = answer(request, new Random(seed)).encode();
    bytes.putInt(place % (bytes.limit() / 4) * 4, value);
    // With a correct checksum only the field checks can detect the damage.
    MessageHeader.finish(bytes.position(bytes.limit()));
    try {
      BlocksOpened decoded = BlocksOpened.decode(bytes, request);
      assertThat(decoded.totalBytes()).isLessThanOrEqualTo(request.maxBytes());
    } catch (WireException e) {
      assertThat(e.getMessage()).contains("message: ");
    }
  }

  @Property(tries = 200)
  void everyCutIsAnError(
      @ForAll("requests") OpenBlocks request,
      @ForAll long seed,
      @ForAll @IntRange(max = 1 << 20) int cut) {
    ByteBuffer asked = request.encode();
    asked.limit(cut % asked.limit());
    assertThatThrownBy(() -> OpenBlocks.decode(asked)).isInstanceOf(WireException.class);
    ByteBuffer answered = answer(request, new Random(seed)).encode();
    answered.limit(cut % answered.limit());
    assertThatThrownBy(() -> BlocksOpened.decode(answered, request))
        .isInstanceOf(WireException.class);
  }

  @Test
  void anotherVersionIsNamedWithWhatToDo() {
    ByteBuffer bytes = REQUEST.encode();
    bytes.order(ByteOrder.LITTLE_ENDIAN).putShort(4, (short) 1);
    assertThatThrownBy(() -> OpenBlocks.decode(bytes))
        .isInstanceOf(WireException.class)
        .hasMessageContaining("peer speaks version 1")
        .hasMessageContaining("same Weft jar");
  }

  @Test
  void swappedMapOutputsOfOneSizeAreNoticed() {
    BlockKey other = REQUEST.ranges().get(1).key();
    BlocksOpened swapped =
        new BlocksOpened(
            new StreamId(1, 2),
            0,
            true,
            List.of(other, KEY),
            new int[] {1, 1},
            new ChunkTable().add(2, 1, 0, 64, 64).add(2, 1, 0, 64, 64));
    assertThatThrownBy(() -> BlocksOpened.decode(swapped.encode(), REQUEST))
        .isInstanceOf(WireException.class)
        .hasMessageContaining("shuffle 7 map 11 was requested, the answer has shuffle 7 map 12");
  }

  @Test
  void aPartitionThatWasNotAskedForIsNoticed() {
    BlocksOpened wrong =
        new BlocksOpened(
            new StreamId(1, 2),
            0,
            true,
            List.of(KEY),
            new int[] {1},
            new ChunkTable().add(5, 1, 0, 64, 64));
    assertThatThrownBy(() -> BlocksOpened.decode(wrong.encode(), REQUEST))
        .isInstanceOf(WireException.class)
        .hasMessageContaining("partition of shuffle 7 map 11: 5");
  }

  @Test
  void moreBytesThanRequestedAreNoticed() {
    BlocksOpened tooMuch =
        new BlocksOpened(
            new StreamId(1, 2),
            0,
            true,
            List.of(KEY),
            new int[] {2},
            new ChunkTable().add(2, 1, 0, 1, 1).add(2, 1, 0, 1 << 20, 1 << 20));
    assertThatThrownBy(() -> BlocksOpened.decode(tooMuch.encode(), REQUEST))
        .isInstanceOf(WireException.class)
        .hasMessageContaining("bytes beyond those requested");
  }

  /** The first position is at most the number of skipped chunks. */
  @Test
  void theFirstPositionRoundTripsAndIsLimited() throws WireException {
    List<BlockRange> ranges = REQUEST.ranges();
    OpenBlocks rest = new OpenBlocks("life", 1 << 10, 5, 10, false, Compression.NONE, ranges);
    for (int position : new int[] {0, 5, 6, -1}) {
      ChunkTable table = new ChunkTable().startAt(position).add(2, 1, 0, 64, 64);
      BlocksOpened answer =
          new BlocksOpened(new StreamId(1, 2), 0, true, List.of(KEY), new int[] {1}, table);
      if (position >= 0 && position <= 5) {
        BlocksOpened decoded = BlocksOpened.decode(answer.encode(), rest);
        assertThat(decoded.table().firstPosition()).isEqualTo(position);
      } else {
        assertThatThrownBy(() -> BlocksOpened.decode(answer.encode(), rest))
            .isInstanceOf(WireException.class)
            .hasMessageContaining("first position");
      }
    }
  }

  private static void assertAllRefuse(ByteBuffer bytes) {
    assertThatThrownBy(() -> OpenBlocks.decode(bytes)).isInstanceOf(WireException.class);
    assertThatThrownBy(() -> BlocksOpened.decode(bytes, REQUEST)).isInstanceOf(WireException.class);
    assertThatThrownBy(() -> BlocksRefused.decode(bytes, 2)).isInstanceOf(WireException.class);
  }

  private static BlocksOpened answer(OpenBlocks request, Random random) {
    int ranges = 1 + random.nextInt(request.ranges().size());
    int[] rangeChunks = new int[ranges];
    List<BlockKey> keys =
        request.ranges().subList(0, ranges).stream().map(BlockRange::key).toList();
    ChunkTable table = new ChunkTable();
    long left = request.maxBytes();
    for (int range = 0; range < ranges; range++) {
      BlockRange asked = request.ranges().get(range);
      if (asked.endPartition() > asked.startPartition() && left >= 128 && random.nextBoolean()) {
        rangeChunks[range] = 1;
        int bytes = 1 + random.nextInt(64);
        boolean compressed = request.compression() != Compression.NONE && random.nextBoolean();
        int sent = compressed ? 1 + random.nextInt(bytes) : bytes;
        table.add(asked.startPartition(), random.nextInt(100), random.nextInt(), sent, bytes);
        left -= 64;
      }
    }
    boolean complete = table.count() == 0 || random.nextBoolean();
    StreamId stream = new StreamId(random.nextLong(), random.nextLong());
    return new BlocksOpened(stream, 0, complete, keys, rangeChunks, table);
  }

  @Provide
  Arbitrary<OpenBlocks> requests() {
    Arbitrary<BlockRange> range =
        Combinators.combine(
                Arbitraries.integers(),
                Arbitraries.longs(),
                Arbitraries.integers().between(0, 5000),
                Arbitraries.integers().between(0, 100))
            .as(
                (shuffle, map, start, count) ->
                    new BlockRange(new BlockKey(shuffle, map), start, start + count));
    return Combinators.combine(
            Arbitraries.strings().alpha().ofMaxLength(16),
            Arbitraries.longs().between(1, Long.MAX_VALUE),
            Arbitraries.integers().between(0, Integer.MAX_VALUE),
            Arbitraries.integers().between(30, OpenBlocks.MAX_CHUNKS),
            Arbitraries.of(true, false),
            Arbitraries.of(Compression.class),
            range.list().ofMinSize(1).ofMaxSize(20))
        .as(OpenBlocks::new);
  }
}
