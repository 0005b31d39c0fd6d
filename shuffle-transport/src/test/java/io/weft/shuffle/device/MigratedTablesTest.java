package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.netty.util.ReferenceCounted;
import io.weft.collectives.DataType;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.DeviceTiers;
import io.weft.device.cuda.TieredLease;
import io.weft.device.cuda.TieredMemory;
import io.weft.memory.ArenaFullException;
import io.weft.memory.ArenaOptions;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.shuffle.device.DeviceCatalog.DeviceOutput;
import io.weft.shuffle.store.BlockKey;
import io.weft.shuffle.store.PacedRegion;
import io.weft.tensor.TensorType;
import io.weft.transfers.TestGpus;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Map outputs that migrate from one executor's device to another's. */
class MigratedTablesTest {
  private static final int MIB = 1 << 20;
  private static final BlockKey KEY = new BlockKey(7, 11);
  private static final int ROWS = 4096;

  @TempDir Path folder;

  private final List<End> ends = new ArrayList<>();

  /** One executor of the test. */
  private record End(
      CudaDevice device, SharedArena arena, DeviceTiers tiers, DeviceCatalog blocks) {
    DeviceOutputSink incoming() {
      return new DeviceOutputSink(blocks, tiers, arena, KEY);
    }

    void close() {
      blocks.close();
      tiers.close();
      assertThat(arena.statistics().extents()).isZero();
      arena.close();
      device.close();
    }
  }

  @BeforeAll
  static void needsDoubles() {
    TestGpus.assumeDoubles();
  }

  @BeforeEach
  void open() throws IOException {
    for (int ordinal = 0; ordinal < 2; ordinal++) {
      CudaDevice device = TestGpus.cuda().open(ordinal);
      Path home = Files.createDirectories(folder.resolve("end-" + ordinal));
      SharedArena arena = SharedArena.open(new ArenaOptions(home, List.of(), MIB, 16 * MIB, 0, 0));
      DeviceTiers tiers =
          DeviceTiers.open(
              device, "end-" + ordinal, 4 * MIB, 4 * MIB, arena, Duration.ofSeconds(30));
      ends.add(new End(device, arena, tiers, new DeviceCatalog()));
    }
  }

  @AfterEach
  void nothingIsLeftBehind() {
    ends.forEach(End::close);
    TestGpus.assertClean();
  }

  private static TableLayout table(int rows) {
    TensorType tensor = TensorType.of(DataType.FLOAT32, 1, 2);
    return TableLayout.fixed(
        List.of(TableColumn.of(ColumnKind.LONG, false), TableColumn.tensors(tensor, true)), rows);
  }

  private static byte[] content(int unit, long bytes) {
    byte[] content = new byte[(int) bytes];
    new Random(unit).nextBytes(content);
    return content;
  }

  /** Publishes three units with two partitions each; all of them fit on the device. */
  private void publish() throws IOException {
    List<DeviceOutput.Unit> units = new ArrayList<>();
    for (int unit = 0; unit < 3; unit++) {
      List<TableLayout> layouts = List.of(table(ROWS), table(unit == 1 ? 0 : ROWS));
      long bytes = layouts.get(0).bytes() * 2;
      TieredMemory memory = ends.get(0).tiers().allocate(bytes);
      try (TieredLease lease = memory.lease()) {
        Memory.copyFrom(content(unit, bytes), Memory.BYTE_ARRAY, lease.address(), (int) bytes);
      }
      units.add(new DeviceOutput.Unit(memory, layouts, new long[] {0, layouts.get(0).bytes()}));
    }
    ends.get(0).blocks().publish(new DeviceOutput(KEY, units));
  }

  private byte[] stream() throws IOException {
    DeviceOutputSource outgoing = DeviceOutputSource.of(ends.get(0).blocks(), KEY);
    try (InputStream input = outgoing.createInputStream()) {
      byte[] bytes = input.readAllBytes();
      assertThat(bytes).hasSize((int) outgoing.size());
      return bytes;
    }
  }

  private void checkArrived() {
    DeviceOutput arrived = ends.get(1).blocks().find(KEY).orElseThrow();
    assertThat(arrived.units()).hasSize(3);
    for (int unit = 0; unit < 3; unit++) {
      TieredMemory memory = arrived.units().get(unit).memory();
      byte[] there = new byte[(int) memory.bytes()];
      try (TieredLease lease = memory.lease()) {
        Memory.copyTo(lease.address(), there, Memory.BYTE_ARRAY, there.length);
      }
      assertThat(there).isEqualTo(content(unit, memory.bytes()));
    }
    assertThat(arrived.slices(1)).hasSize(2);
    assertThat(arrived.slices(1).get(0).offset()).isEqualTo(table(ROWS).bytes());
    assertThat(arrived.slices(0)).extracting(DeviceOutput.Slice::layout).containsOnly(table(ROWS));
  }

  @Test
  void tablesArriveAsTheyLeftInPiecesOfAnySize() throws IOException {
    publish();
    byte[] bytes = stream();
    Random random = new Random(5);
    try (DeviceOutputSink incoming = ends.get(1).incoming()) {
      for (int at = 0; at < bytes.length; ) {
        int length = Math.min(bytes.length - at, 1 + random.nextInt(9000));
        incoming.append(ByteBuffer.wrap(bytes, at, length).slice());
        at += length;
      }
      assertThat(incoming.finish()).isEqualTo(6 * table(ROWS).bytes());
    }
    checkArrived();
    // A second copy is dropped.
    try (DeviceOutputSink again = ends.get(1).incoming()) {
      again.append(ByteBuffer.wrap(bytes));
      assertThat(again.finish()).isPositive();
    }
    checkArrived();
  }

  /** A stream as Netty writes it, while the device spills the tables and the output is removed. */
  @Test
  void aStreamHoldsItsTables() throws IOException {
    publish();
    PacedRegion region =
        (PacedRegion) DeviceOutputSource.of(ends.get(0).blocks(), KEY).convertToNetty();
    assertThat(ends.get(0).tiers().spill(Long.MAX_VALUE)).isPositive();
    ends.get(0).blocks().removeShuffle(KEY.shuffleId());
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (WritableByteChannel channel = Channels.newChannel(bytes)) {
      while (region.transferred() < region.count()) {
        assertThat(region.transferTo(channel, region.transferred())).isPositive();
      }
    }
    ((ReferenceCounted) region).release();
    try (DeviceOutputSink incoming = ends.get(1).incoming()) {
      incoming.append(ByteBuffer.wrap(bytes.toByteArray()));
      incoming.finish();
    }
    checkArrived();
  }

  @Test
  void aRemovedOutputDoesNotMigrate() throws IOException {
    publish();
    DeviceOutputSource outgoing = DeviceOutputSource.of(ends.get(0).blocks(), KEY);
    ends.get(0).blocks().removeShuffle(KEY.shuffleId());
    assertThatThrownBy(outgoing::createInputStream).hasMessageContaining("was removed");
    assertThatThrownBy(() -> DeviceOutputSource.of(ends.get(0).blocks(), KEY))
        .isInstanceOf(IOException.class)
        .hasMessage("shuffle 7 map 11 is not here");
  }

  @Test
  void anOutputOfAnEndedShuffleIsDropped() throws IOException {
    publish();
    ends.get(1).blocks().removeShuffle(KEY.shuffleId());
    try (DeviceOutputSink incoming = ends.get(1).incoming()) {
      incoming.append(ByteBuffer.wrap(stream()));
      assertThatThrownBy(incoming::finish).hasMessageContaining("removed meanwhile");
    }
  }

  @Test
  void aFullArenaIsAnError() throws IOException {
    publish();
    End other = ends.get(1);
    List<Extent> taken = new ArrayList<>();
    Throwable full = null;
    while (full == null) {
      full = catchThrowable(() -> taken.add(other.arena().allocate(MIB, Use.RETAINED)));
    }
    try (DeviceOutputSink incoming = other.incoming()) {
      byte[] bytes = stream();
      assertThatThrownBy(() -> incoming.append(ByteBuffer.wrap(bytes)))
          .isInstanceOf(ArenaFullException.class);
    }
    taken.forEach(other.arena()::free);
  }

  /** Truncated, lost or changed bytes are an error, and nothing leaks. */
  @Test
  void damageIsAnErrorAndLeavesNothing() throws IOException {
    publish();
    byte[] bytes = stream();
    Random random = new Random(9);
    for (int round = 0; round < 200; round++) {
      byte[] damaged = bytes.clone();
      if (round % 2 == 0) {
        damaged = Arrays.copyOf(bytes, random.nextInt(bytes.length));
      } else {
        damaged[random.nextInt(round % 4 == 1 ? 200 : bytes.length)] ^= 1 << random.nextInt(8);
      }
      byte[] arriving = damaged;
      try (DeviceOutputSink incoming = ends.get(1).incoming()) {
        Throwable failure =
            catchThrowable(
                () -> {
                  incoming.append(ByteBuffer.wrap(arriving));
                  incoming.finish();
                });
        assertThat(failure).as("round %d", round).isInstanceOf(IOException.class);
      }
      assertThat(ends.get(1).arena().statistics().extents()).isZero();
    }
    byte[] longer = Arrays.copyOf(bytes, bytes.length + 1);
    try (DeviceOutputSink incoming = ends.get(1).incoming()) {
      assertThatThrownBy(() -> incoming.append(ByteBuffer.wrap(longer)))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("1 bytes or more");
    }
  }
}
