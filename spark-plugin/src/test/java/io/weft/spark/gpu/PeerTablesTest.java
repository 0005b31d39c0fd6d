package io.weft.spark.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.device.Deadline;
import io.weft.shuffle.device.BlockFetches;
import io.weft.shuffle.device.DeviceBlock;
import io.weft.shuffle.device.DeviceFetchException;
import io.weft.shuffle.device.DeviceSlice.DeviceRows;
import io.weft.shuffle.store.BlockKey;
import io.weft.spark.gpu.FetchCounters.FetchCounter;
import io.weft.transfers.TransferException.NoReceiveMemoryException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** What readers give up when receive memory is short, with blocks that have no tables. */
class PeerTablesTest {
  private static final int BLOCKS = 3;
  private static final long BLOCK_BYTES = 100;

  private final Memory memory = new Memory();
  private long split;

  @BeforeEach
  void count() {
    split = FetchCounters.get(FetchCounter.GROUPS_SPLIT);
  }

  /** Receive memory for some blocks, which a group holds from its start to its end. */
  private static final class Memory implements BlockFetches {
    private final List<Group> held = new ArrayList<>();
    private final List<Integer> started = new ArrayList<>();
    private final List<Deadline> waits = new ArrayList<>();
    private int room = BLOCKS;

    @Override
    public BlockFetch start(String executor, List<DeviceBlock> blocks, boolean ahead) {
      Group made = new Group(blocks, ahead);
      started.add(blocks.size());
      if (blocks.size() <= room) {
        room -= blocks.size();
        held.add(made);
      }
      return made;
    }

    @Override
    public boolean makeRoom(Runnable wanted) {
      List<Group> idle = held.stream().filter(group -> group.ahead).toList();
      idle.forEach(group -> group.dropped = true);
      idle.forEach(Group::close);
      return !idle.isEmpty();
    }

    private final class Group implements BlockFetch {
      private final List<DeviceBlock> blocks;
      private boolean ahead;
      private boolean dropped;

      Group(List<DeviceBlock> blocks, boolean ahead) {
        this.blocks = blocks;
        this.ahead = ahead;
      }

      @Override
      public long bytes() {
        return 0;
      }

      @Override
      public boolean claim() {
        ahead = false;
        return !dropped;
      }

      @Override
      public List<List<DeviceRows>> await(Runnable wanted) throws DeviceFetchException {
        boolean came = held.contains(this);
        close();
        if (!came) {
          throw new DeviceFetchException(
              blocks.get(0), "no room", new NoReceiveMemoryException("no room", null));
        }
        return blocks.stream().map(block -> List.<DeviceRows>of()).toList();
      }

      @Override
      public void awaitFree(Deadline deadline, Runnable wanted) {
        assertThat(held).as("all are ended before the first wait").isEmpty();
        waits.add(deadline);
      }

      @Override
      public void close() {
        if (held.remove(this)) {
          room += blocks.size();
        }
      }
    }
  }

  private PeerTables tables(int first, FetchAhead ahead) {
    List<DeviceBlock> blocks =
        IntStream.range(first, first + BLOCKS)
            .mapToObj(map -> new DeviceBlock(new BlockKey(1, map), 0, BLOCK_BYTES))
            .toList();
    return new PeerTables(null, memory, "1", blocks, () -> {}, ahead);
  }

  private long splits() {
    return FetchCounters.get(FetchCounter.GROUPS_SPLIT) - split;
  }

  /** The group ahead was started when the first one was not under way yet. */
  @Test
  void aReaderGivesUpItsOwnGroupsAheadAndTriesTheWholeGroupAgain() throws Exception {
    FetchAhead ahead = new FetchAhead(10 * BLOCK_BYTES * BLOCKS);
    PeerTables first = tables(0, ahead);
    PeerTables second = tables(10, ahead);
    ahead.add(List.of(first, second));
    second.start(true);
    ahead.begin();
    assertThat(first.hasNext()).isFalse();
    assertThat(memory.started).containsExactly(BLOCKS, BLOCKS, BLOCKS);
    ahead.closeFirst();
    ahead.begin();
    assertThat(second.hasNext()).isFalse();
    assertThat(memory.started).as("it is fetched again").containsExactly(3, 3, 3, 3);
    assertThat(splits()).isZero();
    ahead.close();
    assertThat(memory.room).isEqualTo(BLOCKS);
  }

  /** Otherwise a task could wait for each of many groups in turn, as long as for one. */
  @Test
  void groupsAheadAreGivenUpTogetherWithOneDeadline() throws Exception {
    memory.room = 2 * BLOCKS;
    FetchAhead ahead = new FetchAhead(10 * BLOCK_BYTES * BLOCKS);
    PeerTables first = tables(0, ahead);
    PeerTables second = tables(10, ahead);
    PeerTables third = tables(20, ahead);
    ahead.add(List.of(first, second, third));
    second.start(true);
    third.start(true);
    ahead.begin();
    assertThat(first.hasNext()).isFalse();
    assertThat(memory.waits).hasSize(2);
    assertThat(memory.waits.get(0)).isSameAs(memory.waits.get(1));
    ahead.close();
    assertThat(memory.room).isEqualTo(2 * BLOCKS);
  }

  @Test
  void idleGroupsOfOtherTasksGiveWay() throws Exception {
    FetchAhead other = new FetchAhead(10 * BLOCK_BYTES * BLOCKS);
    PeerTables idle = tables(20, other);
    idle.start(true);
    FetchAhead ahead = new FetchAhead(0);
    PeerTables needed = tables(0, ahead);
    ahead.add(List.of(needed));
    ahead.begin();
    assertThat(needed.hasNext()).isFalse();
    assertThat(memory.started).containsExactly(BLOCKS, BLOCKS, BLOCKS);
    assertThat(splits()).isZero();
    assertThat(idle.hasNext()).as("it is fetched again").isFalse();
    assertThat(memory.started).containsExactly(3, 3, 3, 3);
    ahead.close();
    idle.close();
  }

  /** Memory that tasks use now stays: the blocks come one by one. */
  @Test
  void groupsThatAreNeededNowDoNotGiveWay() throws Exception {
    PeerTables busy = tables(20, new FetchAhead(0));
    busy.start(false);
    memory.room = 1;
    PeerTables needed = tables(0, new FetchAhead(0));
    assertThat(needed.hasNext()).isFalse();
    assertThat(memory.started).containsExactly(3, 3, 1, 1, 1);
    assertThat(splits()).isOne();
    busy.close();
    needed.close();
  }
}
