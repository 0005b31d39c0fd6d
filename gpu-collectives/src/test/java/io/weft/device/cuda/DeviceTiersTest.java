package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.awaitility.Awaitility.await;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.HostEvent;
import io.weft.device.UsesDoubles;
import io.weft.memory.ArenaOptions;
import io.weft.memory.Extent;
import io.weft.memory.Memory;
import io.weft.memory.SharedArena;
import io.weft.memory.SpillPolicy.Use;
import io.weft.testgpus.DeviceBytes;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Room for four pieces on the device, two pinned, two in shared memory, the rest on disk. */
@UsesGpu
class DeviceTiersTest {
  private static final int MIB = 1 << 20;
  private static final int SIZE = MIB - 512;
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  @TempDir Path folder;
  @TempDir Path disk;

  private CudaDevice device;
  private SharedArena arena;

  @BeforeEach
  void open() throws IOException {
    device = TestMachine.open(4);
    DoubleLibraries.cudaControls().cudaDoublePageableCopies();
    arena = SharedArena.open(new ArenaOptions(folder, List.of(disk), MIB, 2 * MIB, 4 * MIB, 0));
  }

  @AfterEach
  void nothingIsLeaked() {
    DoubleLibraries.cudaControls().cudaDoublePause(0);
    assertThat(arena.statistics().extents()).isZero();
    arena.close();
    device.close();
    DoubleLibraries.assertClean();
    assertThat(DoubleLibraries.cudaControls().cudaDoublePageableCopies()).isZero();
  }

  private DeviceTiers tiers(Duration timeout) {
    return DeviceTiers.open(device, "test", 4 * MIB, 4 * MIB, arena, timeout);
  }

  private TieredMemory filled(DeviceTiers tiers, int value) {
    TieredMemory memory = tiers.allocate(SIZE);
    try (TieredLease lease = memory.lease()) {
      DeviceBytes.fill(device, lease.address(), SIZE, (byte) value);
    }
    return memory;
  }

  private void check(TieredMemory memory, int value) {
    try (TieredLease lease = memory.lease()) {
      assertThat(memory.tier()).isEqualTo(MemoryTier.DEVICE);
      assertThat(DeviceBytes.get(device, lease.address())).isEqualTo((byte) value);
      assertThat(DeviceBytes.get(device, lease.address() + SIZE - 1)).isEqualTo((byte) value);
    }
  }

  private List<TieredMemory> fill(DeviceTiers tiers, int count) {
    List<TieredMemory> memories = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      memories.add(filled(tiers, i));
    }
    return memories;
  }

  @Test
  void leastRecentlyUsedMemorySpills() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 10);
      assertThat(memories)
          .extracting(TieredMemory::tier)
          .containsExactly(
              MemoryTier.PINNED,
              MemoryTier.PINNED,
              MemoryTier.SHARED_MEMORY,
              MemoryTier.SHARED_MEMORY,
              MemoryTier.DISK,
              MemoryTier.DISK,
              MemoryTier.DEVICE,
              MemoryTier.DEVICE,
              MemoryTier.DEVICE,
              MemoryTier.DEVICE);
      assertThat(tiers.bytes(MemoryTier.DISK)).isEqualTo(2L * SIZE);
      check(memories.get(6), 6);
      check(memories.get(0), 0);
      assertThat(memories.get(7).tier()).isNotEqualTo(MemoryTier.DEVICE);
      for (int i = 0; i < 10; i++) {
        check(memories.get(i), i);
      }
      memories.forEach(TieredMemory::close);
      await().until(() -> arena.statistics().extents() == 0);
    }
  }

  @Test
  void parallelUsersFindTheirBytes() throws Exception {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 10);
      List<CompletableFuture<Void>> threads = new ArrayList<>();
      for (int thread = 0; thread < 3; thread++) {
        Random random = new Random(thread);
        threads.add(
            CompletableFuture.runAsync(
                () -> {
                  for (int step = 0; step < 100; step++) {
                    int i = random.nextInt(10);
                    check(memories.get(i), i);
                  }
                }));
      }
      for (CompletableFuture<Void> thread : threads) {
        thread.get(60, TimeUnit.SECONDS);
      }
      memories.forEach(TieredMemory::close);
    }
  }

  @Test
  void leasedMemoryStays() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 4);
      HostEvent use = new HostEvent("use");
      List<TieredLease> leases = memories.stream().map(TieredMemory::lease).toList();
      leases.get(0).usedUntil(use);
      leases.get(0).close();
      assertThatThrownBy(() -> tiers.allocate(SIZE))
          .hasMessageContaining("tiers test of " + device.device())
          .hasMessageContaining("all memory there is in use");
      assertThat(tiers.spill(SIZE)).isZero();
      use.complete();
      TieredMemory another = tiers.allocate(SIZE);
      assertThat(memories).extracting(TieredMemory::tier).startsWith(MemoryTier.PINNED);
      leases.forEach(TieredLease::close);
      assertThatThrownBy(() -> leases.get(1).address()).hasMessageContaining("was closed");
      memories.forEach(TieredMemory::close);
      another.close();
      assertThatThrownBy(another::lease).hasMessageContaining("was closed");
    }
  }

  /** Like a library beside Weft that needs device memory. */
  @Test
  @UsesDoubles
  void spillingFreesMemoryOfTheDevice() {
    long free = device.freeBytes();
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 4);
      assertThat(device.freeBytes()).isEqualTo(free - 4 * MIB);
      assertThat(tiers.spill(Long.MAX_VALUE)).isEqualTo(4L * SIZE);
      assertThat(device.freeBytes()).isEqualTo(free);
      assertThat(tiers.bytes(MemoryTier.DEVICE)).isZero();
      for (int i = 0; i < 4; i++) {
        check(memories.get(i), i);
      }
      memories.forEach(TieredMemory::close);
    }
  }

  @Test
  void fullTiersRefuseAndKeepTheirMemory() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 12);
      assertThatThrownBy(() -> tiers.allocate(SIZE))
          .hasMessageContaining("nothing can be spilled from " + device.device())
          .cause()
          .hasMessageContaining("no room for 1023.5 KiB");
      memories.remove(11).close();
      for (int i = 0; i < 11; i++) {
        check(memories.get(i), i);
      }
      memories.forEach(TieredMemory::close);
    }
  }

  /** Copies from each tier; the memory does not move. */
  @Test
  void copiesAreMadeFromEachTier() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 9);
      List<MemoryTier> before = memories.stream().map(TieredMemory::tier).toList();
      assertThat(before).contains(MemoryTier.values());
      for (int i = 0; i < 9; i++) {
        try (TieredHold hold = memories.get(i).hold();
            HostCopy copy = hold.copy()) {
          assertThat(copy.view().remaining()).isEqualTo(SIZE);
          assertThat(copy.view().get(SIZE - 1)).isEqualTo((byte) i);
        }
      }
      assertThat(memories).extracting(TieredMemory::tier).containsExactlyElementsOf(before);
      memories.forEach(TieredMemory::close);
    }
  }

  /** Reads from each tier, while no memory on the device can move; the memory does not move. */
  @Test
  void memoryIsReadFromEachTier() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 9);
      List<MemoryTier> before = memories.stream().map(TieredMemory::tier).toList();
      assertThat(before).contains(MemoryTier.values());
      List<TieredLease> leases =
          memories.stream().flatMap(memory -> memory.leaseIfOnDevice().stream()).toList();
      assertThat(leases).hasSize(4);
      long to = Memory.allocate(8);
      for (int i = 0; i < 9; i++) {
        memories.get(i).read(SIZE - 8, 8, to).await(Deadline.after(TIMEOUT));
        assertThat(Memory.getByte(to)).isEqualTo((byte) i);
        assertThat(Memory.getByte(to + 7)).isEqualTo((byte) i);
      }
      assertThat(memories).extracting(TieredMemory::tier).containsExactlyElementsOf(before);
      TieredMemory last = memories.get(8);
      assertThatThrownBy(() -> last.read(1, SIZE, to)).hasMessageContaining("are not within");
      leases.forEach(TieredLease::close);
      memories.forEach(TieredMemory::close);
      assertThatThrownBy(() -> last.read(0, 8, to).await(Deadline.after(TIMEOUT)))
          .hasStackTraceContaining("was closed");
      Memory.free(to);
    }
  }

  @Test
  void aHoldKeepsClosedMemoryThatCanStillBeRead() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      TieredMemory memory = filled(tiers, 5);
      TieredHold hold = memory.hold();
      memory.close();
      assertThatThrownBy(memory::hold).hasMessageContaining("was closed");
      assertThat(tiers.spill(SIZE)).isEqualTo(SIZE);
      HostCopy copy = hold.copy();
      assertThat(copy.view().get(0)).isEqualTo((byte) 5);
      copy.close();
      copy.close();
      assertThatThrownBy(copy::view).hasMessageContaining("was closed");
      hold.close();
      hold.close();
      assertThatThrownBy(hold::copy).hasMessageContaining("was closed");
      await().until(() -> tiers.bytes(MemoryTier.PINNED) == 0);
    }
  }

  /** As from another executor; two pieces are in shared memory, one on disk. */
  @Test
  void adoptedHostMemoryMovesToTheDeviceWhenItIsLeased() throws IOException {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = new ArrayList<>();
      for (int i = 0; i < 3; i++) {
        Extent extent = arena.allocate(SIZE, Use.RETAINED);
        Memory.setMemory(extent.address(), SIZE, (byte) i);
        memories.add(tiers.adopt(extent, SIZE));
      }
      assertThat(memories)
          .extracting(TieredMemory::tier)
          .containsExactly(MemoryTier.SHARED_MEMORY, MemoryTier.SHARED_MEMORY, MemoryTier.DISK);
      for (int i = 0; i < 3; i++) {
        check(memories.get(i), i);
      }
      memories.forEach(TieredMemory::close);
    }
  }

  @Test
  void damagedBytesOnDiskAreNotRead() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      List<TieredMemory> memories = fill(tiers, 10);
      TieredMemory damaged =
          memories.stream()
              .filter(each -> each.tier() == MemoryTier.DISK)
              .findFirst()
              .orElseThrow();
      long there = damaged.extent().address();
      byte was = Memory.getByte(there);
      Memory.setMemory(there, 1, (byte) ~was);
      long to = Memory.allocate(8);
      assertThatThrownBy(() -> damaged.read(SIZE - 8, 8, to).await(Deadline.after(TIMEOUT)))
          .hasStackTraceContaining("have a different checksum now");
      Memory.setMemory(there, 1, was);
      damaged.read(SIZE - 8, 8, to).await(Deadline.after(TIMEOUT));
      Memory.free(to);
      memories.forEach(TieredMemory::close);
    }
  }

  @Test
  void closedMemoryStaysUntilItsLeaseEnds() {
    try (DeviceTiers tiers = tiers(TIMEOUT)) {
      TieredMemory memory = filled(tiers, 1);
      TieredLease lease = memory.lease();
      memory.close();
      assertThat(tiers.bytes(MemoryTier.DEVICE)).isEqualTo(SIZE);
      assertThat(DeviceBytes.get(device, lease.address())).isEqualTo((byte) 1);
      lease.close();
      await().until(() -> tiers.bytes(MemoryTier.DEVICE) == 0);
    }
  }
}
