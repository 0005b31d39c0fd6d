package io.weft.shuffle.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.HostEvent;
import io.weft.memory.Memory;
import io.weft.testgpus.UsesGpu;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@UsesGpu
class HostTableTest {
  private static final List<TableColumn> COLUMNS =
      List.of(TableColumn.of(ColumnKind.INT, true), TableColumn.of(ColumnKind.STRING, false));

  private TableGpu gpu;

  @BeforeEach
  void open() {
    gpu = new TableGpu();
  }

  @AfterEach
  void nothingIsLeaked() {
    gpu.close();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 1000})
  void tableReturnsUnchanged(int rows) {
    RandomTable random = new RandomTable(rows, 3, 10);
    try (HostTable table = random.fill(gpu.pinned, random.columns(20), rows)) {
      DeviceTable there = table.upload(gpu.lane, gpu.memory);
      assertThat(there.layout()).isEqualTo(table.layout());
      try (HostTable back = HostTable.download(gpu.lane, there, gpu.pinned)) {
        there.close(); // Its memory is kept until it is copied.
        back.ready().await(TableGpu.deadline());
        assertThat(bytes(back)).isEqualTo(bytes(table));
      }
    }
  }

  private static byte[] bytes(HostTable table) {
    byte[] bytes = new byte[Math.toIntExact(table.layout().bytes())];
    Memory.copyTo(table.address(), bytes, Memory.BYTE_ARRAY, bytes.length);
    return bytes;
  }

  @Test
  void tableWithoutColumnsIsATable() {
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.fixed(List.of(), 5));
        DeviceTable there = table.upload(gpu.lane, gpu.memory);
        HostTable back = HostTable.download(gpu.lane, there, gpu.pinned)) {
      back.ready().await(TableGpu.deadline());
      assertThat(back.layout().rows()).isEqualTo(5);
      assertThat(there.bytes()).isZero();
    }
  }

  @Test
  void newTableIsNullOrZero() {
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.of(COLUMNS, 9, 0, 0))) {
      assertThat(table.isValid(0, 8)).isFalse();
      assertThat(table.value(1, 8).remaining()).isZero();
      table.putAllValid(0);
      assertThat(table.isValid(0, 8)).isTrue();
      assertThat(Memory.getByte(table.address() + 1)).isEqualTo((byte) 1);
    }
  }

  @Test
  void bitsBecomeBooleans() {
    List<TableColumn> columns = List.of(TableColumn.of(ColumnKind.BOOLEAN, false), COLUMNS.get(0));
    ByteBuffer bits = ByteBuffer.allocateDirect(2).put(0, (byte) 0b1000_0101).put(1, (byte) -1);
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.fixed(columns, 9))) {
      table.putBooleans(0, Memory.addressOf(bits));
      for (int row = 0; row < 9; row++) {
        boolean isSet = List.of(0, 2, 7, 8).contains(row);
        assertThat(table.value(0, row).get(0)).isEqualTo((byte) (isSet ? 1 : 0));
      }
      assertThatThrownBy(() -> table.putBooleans(1, 0)).hasMessageContaining("is not boolean");
    }
    Reference.reachabilityFence(bits);
  }

  @Test
  void valuesMustFit() {
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.of(COLUMNS, 2, 0, 0))) {
      assertThatThrownBy(() -> table.putValues(0, ByteBuffer.allocate(7)))
          .hasMessageContaining("7 bytes for column 0, which takes 8");
      assertThatThrownBy(() -> table.putValues(1, ByteBuffer.allocate(0)))
          .hasMessageContaining("has strings");
      assertThatThrownBy(() -> table.putValidity(1, 0)).hasMessageContaining("has no validity");
      assertThatThrownBy(() -> table.putStrings(0, 0, 0)).hasMessageContaining("has no strings");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"0 3 2", "-1 0 2", "1 1 4", "5 6 6"})
  void invalidStringsAreRefused(String text) {
    ByteBuffer offsets = ByteBuffer.allocateDirect(12).order(ByteOrder.nativeOrder());
    for (String offset : text.split(" ")) {
      offsets.putInt(Integer.parseInt(offset));
    }
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.of(COLUMNS, 2, 0, 2))) {
      long address = Memory.addressOf(offsets);
      assertThatThrownBy(() -> table.putStrings(1, address, address))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("column 1");
    }
    Reference.reachabilityFence(offsets);
  }

  /** Work that fails leaks nothing, and its event gives the reason. */
  @Test
  void uploadAfterFailedWorkFails() {
    HostEvent before = new HostEvent("before");
    try (HostTable table = HostTable.allocate(gpu.pinned, TableLayout.fixed(COLUMNS, 2));
        DeviceTable there = table.upload(gpu.lane, gpu.memory, before)) {
      before.fail(new IllegalStateException("no data"));
      assertThatThrownBy(() -> there.ready().await(TableGpu.deadline()))
          .hasRootCauseMessage("no data");
    }
  }

  @Test
  void viewMustFitItsMemory() {
    TableLayout layout = TableLayout.fixed(List.of(TableColumn.of(ColumnKind.LONG, false)), 100);
    var done = HostEvent.completed("done");
    try (var memory = gpu.memory.take(1024)) {
      assertThat(DeviceTable.view(memory, 192, layout, done).address())
          .isEqualTo(memory.address() + 192);
      assertThatThrownBy(() -> DeviceTable.view(memory, 256, layout, done))
          .isInstanceOf(IndexOutOfBoundsException.class);
      assertThatThrownBy(() -> DeviceTable.view(memory, 32, layout, done))
          .hasMessageContaining("not a multiple of 64");
    }
  }
}
