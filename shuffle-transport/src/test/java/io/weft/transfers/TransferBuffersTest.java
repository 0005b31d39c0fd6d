package io.weft.transfers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.collectives.DataType;
import io.weft.device.HostEvent;
import io.weft.memory.ArenaFullException;
import io.weft.memory.ArenaOptions;
import io.weft.memory.SharedArena;
import io.weft.transfers.ReceiveMemory.BufferStatistics;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The holders of a receive buffer, and the reuse of its memory. */
class TransferBuffersTest {
  private static final long MIB = 1 << 20;

  @TempDir Path folder;

  private SharedArena arena;
  private TransferBuffers buffers;

  @BeforeEach
  void open() throws IOException {
    arena = SharedArena.open(new ArenaOptions(folder, List.of(), 2 * MIB, 4 * MIB, 0, 0));
    buffers = new TransferBuffers(arena);
  }

  @AfterEach
  void close() {
    buffers.close();
    assertThat(arena.statistics().extents()).isZero();
    arena.close();
  }

  /** Otherwise a buffer would get less memory than its size. */
  @Test
  void noBufferIsLargerThanAnExtent() {
    assertThatThrownBy(() -> buffers.take(3_000_000_000L))
        .isInstanceOf(IOException.class)
        .hasMessage(
            "an array in host memory has 1 to 2147483584 bytes, not 3000000000; send it in parts");
    assertThatThrownBy(() -> buffers.take(0)).isInstanceOf(IOException.class);
    assertThat(buffers.statistics().taken()).isZero();
  }

  @Test
  void memoryIsReusedBySize() throws Exception {
    TransferBuffer first = buffers.take(5000);
    long address = first.address();
    first.close();
    try (TransferBuffer second = buffers.take(8000);
        TransferBuffer third = buffers.take(8192)) {
      assertThat(second.address()).isEqualTo(address);
      assertThat(second.bytes()).isEqualTo(8000);
      assertThat(third.address()).isNotEqualTo(address);
    }
    BufferStatistics statistics = buffers.statistics();
    assertThat(statistics.taken()).isEqualTo(3);
    assertThat(statistics.allocated()).isEqualTo(2);
    assertThat(statistics.reused()).isEqualTo(1);
    assertThat(statistics.out()).isZero();
    assertThat(statistics.idleBytes()).isEqualTo(2 * 8192);
  }

  @Test
  void aUseKeepsTheMemoryAfterItsHolderHasClosedIt() throws Exception {
    TransferBuffer buffer = buffers.take(100);
    HostEvent use = new HostEvent("a use");
    buffer.usedUntil(use);
    buffer.close();
    buffer.close();
    assertThat(buffer.address()).isNotZero();
    assertThat(buffers.statistics().out()).isEqualTo(1);
    use.complete();
    assertThat(buffers.statistics().out()).isZero();
    assertThatThrownBy(buffer::address).hasMessageContaining("was given back");
    assertThatThrownBy(() -> buffer.usedUntil(new HostEvent("late")))
        .hasMessageContaining("was given back before late");
  }

  @Test
  void shapesFitOrAreRefused() throws Exception {
    try (TransferBuffer buffer = buffers.take(96)) {
      assertThat(buffer.as(BufferShape.of(DataType.FLOAT32, 4, 6)).count()).isEqualTo(24);
      assertThatThrownBy(() -> buffer.as(BufferShape.of(DataType.FLOAT32, 25)))
          .isInstanceOf(IndexOutOfBoundsException.class);
    }
  }

  @Test
  void buffersThatNobodyUsesAreFreed() throws Exception {
    TransferBuffer first = buffers.take(5000);
    buffers.take(9000).close();
    buffers.freeIdle(Duration.ofHours(1));
    assertThat(buffers.statistics().idleBytes()).as("used just now").isPositive();
    buffers.freeIdle(Duration.ZERO);
    assertThat(buffers.statistics().idleBytes()).isZero();
    assertThat(arena.statistics().extents()).as("the buffer in use").isEqualTo(1);
    first.close();
  }

  /** Idle buffers do not keep an arena full. */
  @Test
  void aFullArenaGetsBackIdleBuffers() throws Exception {
    List<TransferBuffer> small = new ArrayList<>();
    for (int i = 0; i < 60; i++) {
      small.add(buffers.take(64 << 10));
    }
    assertThatThrownBy(() -> buffers.take(2 * MIB)).isInstanceOf(ArenaFullException.class);
    small.forEach(TransferBuffer::close);
    try (TransferBuffer large = buffers.take(2 * MIB)) {
      assertThat(large.bytes()).isEqualTo(2 * MIB);
    }
    try (TransferBuffer one = buffers.take(1 << 10);
        TransferBuffer two = buffers.take(1 << 10)) {
      assertThat(one.address()).isNotEqualTo(two.address());
    }
    long allocated = buffers.statistics().allocated();
    try (TransferBuffer one = buffers.take(1000);
        TransferBuffer two = buffers.take(4096)) {
      assertThat(one.address()).isNotEqualTo(two.address());
    }
    assertThat(buffers.statistics().allocated()).isEqualTo(allocated);
  }
}
