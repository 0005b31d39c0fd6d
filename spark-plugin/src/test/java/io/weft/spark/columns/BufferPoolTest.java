package io.weft.spark.columns;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.HashSet;
import java.util.Set;
import org.apache.spark.unsafe.Platform;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BufferPoolTest {
  @AfterEach
  void freeIdle() {
    BufferPool.freeIdle();
  }

  @Test
  void choosesTheSmallestClassThatFits() {
    assertThat(BufferPool.bytes(BufferPool.sizeClass(0))).isEqualTo(64);
    assertThat(BufferPool.bytes(BufferPool.sizeClass(64))).isEqualTo(64);
    assertThat(BufferPool.bytes(BufferPool.sizeClass(65))).isEqualTo(128);
    assertThat(BufferPool.bytes(BufferPool.sizeClass(3L << 30))).isEqualTo(4L << 30);
  }

  @Test
  void allocatesBuffersThatDoNotOverlap() {
    try (BufferPool pool = BufferPool.borrow()) {
      long[] addresses = new long[200];
      for (int i = 0; i < addresses.length; i++) {
        int sizeClass = i % 17;
        addresses[i] = pool.allocate(sizeClass);
        Platform.setMemory(addresses[i], (byte) i, BufferPool.bytes(sizeClass));
      }
      for (int i = 0; i < addresses.length; i++) {
        long end = addresses[i] + BufferPool.bytes(i % 17) - 1;
        assertThat(Platform.getByte(null, addresses[i])).isEqualTo((byte) i);
        assertThat(Platform.getByte(null, end)).isEqualTo((byte) i);
      }
    }
  }

  @Test
  void countsBytesInUse() {
    try (BufferPool pool = BufferPool.borrow()) {
      long small = pool.allocate(0);
      long large = pool.allocate(16);
      assertThat(pool.usedBytes()).isEqualTo(64 + (4 << 20));
      pool.free(large, 16);
      assertThat(pool.usedBytes()).isEqualTo(64);
      assertThat(pool.allocate(16)).isEqualTo(large);
      pool.free(small, 0);
    }
  }

  @Test
  void reusesItsMemoryForTheNextTask() {
    Set<Long> first = new HashSet<>();
    long reserved;
    try (BufferPool pool = BufferPool.borrow()) {
      for (int sizeClass = 0; sizeClass < 17; sizeClass++) {
        first.add(pool.allocate(sizeClass));
      }
      reserved = pool.reservedBytes();
    }
    try (BufferPool pool = BufferPool.borrow()) {
      for (int sizeClass = 0; sizeClass < 17; sizeClass++) {
        assertThat(first).contains(pool.allocate(sizeClass));
      }
      assertThat(pool.reservedBytes()).isEqualTo(reserved);
    }
  }

  @Test
  void limitsItsMemoryWhileIdle() {
    try (BufferPool pool = BufferPool.borrow()) {
      for (int i = 0; i < 10; i++) {
        pool.allocate(18);
      }
      assertThat(pool.reservedBytes()).isEqualTo(160L << 20);
    }
    try (BufferPool pool = BufferPool.borrow()) {
      assertThat(pool.reservedBytes()).isLessThanOrEqualTo(64L << 20);
    }
  }

  @Test
  void freesIdleMemory() {
    BufferPool pool = BufferPool.borrow();
    pool.allocate(0);
    pool.close();
    BufferPool.freeIdle();
    try (BufferPool fresh = BufferPool.borrow()) {
      assertThat(fresh.reservedBytes()).isZero();
    }
  }
}
