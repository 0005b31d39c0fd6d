package io.weft.transfers.gpu;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.DataType;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.DeviceBuffer;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.memory.Memory;
import io.weft.transfers.Manifest;
import io.weft.transfers.Manifest.ManifestEntry;
import io.weft.transfers.TestGpus;
import io.weft.transfers.TransferWire;
import io.weft.transfers.gpu.LentSegments.Agreed;
import io.weft.transfers.gpu.LentSegments.Lending;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Loans to another end that maps nothing. */
class LentSegmentsTest {
  private static final int MIB = 1 << 20;

  private CudaDevice device;
  private CudaMemoryPool pool;
  private LentSegments segments;

  @BeforeAll
  static void needsGpu() {
    TestGpus.assume();
  }

  @BeforeEach
  void open() {
    device = TestGpus.cuda().open(0);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 16 * MIB);
    segments = new LentSegments(device);
  }

  @AfterEach
  void close() {
    segments.endLoans();
    assertThat(pool.lentBytes()).isZero();
    pool.close();
    device.close();
    TestGpus.assertClean();
  }

  /** All its messages are zeros: it lends nothing, and its answers are refusals. */
  private static final class RefusingEnd implements TransferWire {
    @Override
    public List<ManifestEntry> exchange(Manifest mine) {
      throw new UnsupportedOperationException();
    }

    @Override
    public void move(List<TypedBuffer> sends, List<TypedBuffer> receives) {
      receives.forEach(each -> Memory.setMemory(each.address(), each.bytes(), (byte) 0));
    }

    @Override
    public Optional<RuntimeException> failure() {
      return Optional.empty();
    }

    @Override
    public void abort(String reason) {
      throw new UnsupportedOperationException();
    }
  }

  /** Returns the number of segments that are offered to the other end. */
  private int move(CudaMemory memory) {
    TypedBuffer array = TypedBuffer.of(new DeviceBuffer(memory), 0, DataType.INT8, memory.bytes());
    Lending lending = segments.lend(List.of(array));
    Agreed agreed = segments.agree(new RefusingEnd(), lending, List.of());
    assertThat(agreed.sends()).as("copied by this end").containsExactly(array);
    return lending.fresh().size();
  }

  /**
   * Otherwise the driver may give the address to another segment. The entry of the old one would
   * then hide a part of the new one, which would be leased twice and returned once.
   */
  @Test
  void aRefusedSegmentKeepsItsAddress() {
    try (CudaMemory memory = pool.take(8 * MIB)) {
      assertThat(move(memory)).isOne();
      assertThat(move(memory)).as("offered again").isZero();
    }
    assertThat(pool.lentBytes()).isEqualTo(8 * MIB);
    pool.trim();
    assertThat(pool.reservedBytes()).isEqualTo(8 * MIB);
  }

  @Test
  void aRefusedSegmentReturnsWhenItsPoolNeedsIt() {
    try (CudaMemory memory = pool.take(8 * MIB)) {
      assertThat(move(memory)).isOne();
    }
    assertThat(segments.isWantedBack()).isFalse();
    pool.trim();
    assertThat(segments.isWantedBack()).isTrue();
    try (CudaMemoryPool other = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 16 * MIB);
        CudaMemory memory = other.take(8 * MIB)) {
      assertThat(move(memory)).isOne();
      assertThat(pool.lentBytes()).isZero();
      segments.endLoans();
    }
  }
}
