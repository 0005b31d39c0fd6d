package io.weft.device.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Event;
import io.weft.device.Lane.Priority;
import io.weft.device.UsesDoubles;
import io.weft.device.cuda.DeviceUploads.Run;
import io.weft.memory.Memory;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@UsesGpu
class DeviceUploadsTest {
  private static final int PIECE = 10_000;
  private static final int MOST = 12 * PIECE;
  private static final Duration TIMEOUT = Duration.ofSeconds(60);

  private CudaDevice device;
  private CudaMemoryPool pinned;
  private CudaMemoryPool pool;
  private CudaMemory there;
  private DeviceUploads uploads;
  private final ByteBuffer from = random();
  private final long host = Memory.addressOf(from);

  @BeforeEach
  void open() {
    device = TestMachine.open(4);
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 1 << 20);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    there = pool.take(MOST);
    uploads = DeviceUploads.open(device, "uploads", pinned, PIECE, TIMEOUT);
    DoubleLibraries.cudaControls().cudaDoublePageableCopies();
  }

  @AfterEach
  void nothingIsLeaked() {
    assertThat(DoubleLibraries.cudaControls().cudaDoublePageableCopies()).isZero();
    uploads.close();
    there.close();
    assertThat(pool.takenBytes()).isZero();
    assertThat(pinned.takenBytes()).isZero();
    pool.close();
    pinned.close();
    device.close();
    DoubleLibraries.assertClean();
  }

  private static ByteBuffer random() {
    byte[] values = new byte[MOST];
    new Random(7).nextBytes(values);
    return ByteBuffer.allocateDirect(MOST).put(values).flip();
  }

  /** The bytes on the device. */
  private ByteBuffer download() {
    ByteBuffer to = ByteBuffer.allocateDirect(MOST);
    try (CudaStream stream = CudaStream.open(device, "look", Priority.NORMAL);
        BounceBuffers bounce = new BounceBuffers(stream, pinned, PIECE)) {
      bounce.copyToHost(
          Memory.addressOf(to),
          there.address(),
          MOST,
          mark -> {
            while (!mark.isReached()) {
              Thread.onSpinWait();
            }
          });
    }
    return to;
  }

  private static void await(Event event) {
    event.await(Deadline.after(TIMEOUT));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, PIECE - 1, PIECE, PIECE + 1, 7 * PIECE + 13, MOST})
  void oneRunOfAnyLengthArrives(int bytes) {
    await(uploads.upload("one run", List.of(new Run(host, 0, bytes)), there));
    assertThat(download().limit(bytes)).isEqualTo(from.duplicate().limit(bytes));
  }

  /** Runs of random lengths and gaps, from random addresses. */
  @Test
  void runsArriveAtTheirPlaces() {
    Random random = new Random(3);
    for (int round = 0; round < 20; round++) {
      List<Run> runs = new ArrayList<>();
      int at = 0;
      while (at < MOST) {
        int bytes = Math.min(MOST - at, random.nextInt(2 * PIECE));
        runs.add(new Run(host + random.nextInt(MOST - bytes + 1), at, bytes));
        at += bytes + random.nextInt(round % 2 == 0 ? 300 : 9000);
      }
      await(uploads.upload("round " + round, runs, there));
      ByteBuffer found = download();
      for (Run run : runs) {
        int start = (int) (run.from() - host);
        assertThat(found.slice((int) run.offset(), (int) run.bytes()))
            .isEqualTo(from.slice(start, (int) run.bytes()));
      }
    }
  }

  @Test
  @UsesDoubles
  void hostMemoryIsFreeWhenTheUploadIsRecorded() {
    DoubleLibraries.cudaControls().cudaDoublePause(1);
    Event event;
    try {
      event = uploads.upload("two pieces", List.of(new Run(host, 0, 2 * PIECE)), there);
      event.awaitRecorded(Deadline.after(TIMEOUT));
      assertThat(event.state()).isEqualTo(Event.State.RECORDED);
      Memory.setMemory(host, MOST, (byte) 0);
    } finally {
      DoubleLibraries.cudaControls().cudaDoublePause(0);
    }
    await(event);
    assertThat(download().limit(2 * PIECE)).isEqualTo(random().limit(2 * PIECE));
  }

  @Test
  @UsesDoubles
  void memoryThatIsClosedStaysUntilTheUploadHasEnded() {
    DoubleLibraries.cudaControls().cudaDoublePause(1);
    CudaMemory closed = pool.take(PIECE);
    long taken = pool.takenBytes();
    Event event;
    try {
      event = uploads.upload("to closed memory", List.of(new Run(host, 0, PIECE)), closed);
      closed.close();
      assertThat(pool.takenBytes()).isEqualTo(taken);
    } finally {
      DoubleLibraries.cudaControls().cudaDoublePause(0);
    }
    await(event);
    assertThat(pool.takenBytes()).isLessThan(taken);
  }

  /** A stream of other code waits for an upload, and an upload for it. */
  @Test
  void foreignStreamsAreOrderedWithUploads() {
    try (CudaStream theirs = CudaStream.open(device, "theirs", Priority.NORMAL);
        CudaMemory copy = pool.take(PIECE)) {
      CudaStream borrowed = CudaStream.borrowed(device, "borrowed", theirs.handle());
      Event first = uploads.upload("first", List.of(new Run(host, 0, PIECE)), there);
      CudaLane.order(first, borrowed, Deadline.after(TIMEOUT));
      borrowed.copyOnDevice(copy.address(), there.address(), PIECE);
      Event used = uploads.lane().after("their use", borrowed);
      await(uploads.upload("second", List.of(new Run(host + PIECE, 0, PIECE)), there));
      assertThat(used.state()).isEqualTo(Event.State.COMPLETE);
      theirs.copyOnDevice(there.address() + PIECE, copy.address(), PIECE);
      assertThat(theirs.awaitIdle(Deadline.after(TIMEOUT))).isTrue();
      borrowed.close();
    }
    ByteBuffer found = download();
    assertThat(found.slice(0, PIECE)).isEqualTo(from.slice(PIECE, PIECE));
    assertThat(found.slice(PIECE, PIECE)).isEqualTo(from.slice(0, PIECE));
  }

  @Test
  void runsWithoutAPlaceAreRefused() {
    assertThatThrownBy(() -> uploads.upload("beyond", List.of(new Run(host, MOST - 1, 2)), there))
        .isInstanceOf(IndexOutOfBoundsException.class)
        .hasMessageContaining("of " + MOST + " bytes");
    assertThatThrownBy(() -> new Run(host, -1, 2)).hasMessage("2 bytes at -1");
    assertThatThrownBy(() -> DeviceUploads.open(device, "small", pinned, 4096, TIMEOUT))
        .hasMessageContaining("too small");
  }
}
