package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.weft.collectives.CollectiveException;
import io.weft.collectives.CollectiveException.Kind;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorOptions;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.bootstrap.ThreadBootstrap;
import io.weft.collectives.local.LocalCommunicator;
import io.weft.collectives.nccl.PeerExchange.PeerRows;
import io.weft.device.Deadline;
import io.weft.device.DoubleLibraries;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.memory.Memory;
import io.weft.testgpus.DeviceBytes;
import io.weft.testgpus.TestMachine;
import io.weft.testgpus.UsesGpu;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** One rank that writes to itself: the kernels check sizes that only the device sees. */
@UsesGpu
class PeerExchangeTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final int ROWS = 100;
  private static final int ROW_BYTES = 12;

  private CudaDevice device;
  private CudaStream stream;
  private CudaMemoryPool pool;
  private CudaMemory send;
  private CudaMemory receive;
  private Communicator hosts;
  private PeerWindow window;
  private PeerExchange exchange;

  @BeforeEach
  void open() {
    device = TestMachine.open(0);
    stream = CudaStream.open(device, "test", Priority.NORMAL);
    pool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 1 << 20);
    send = pool.take(ROWS * ROW_BYTES);
    receive = pool.take(ROWS * ROW_BYTES);
    hosts = LocalCommunicator.create(ThreadBootstrap.open(1).get(0), CommunicatorOptions.DEFAULT);
    window = PeerWindow.open(hosts, receive, stream, Deadline.after(LONG));
    exchange = new PeerExchange(stream);
    ByteBuffer rows = ByteBuffer.allocateDirect(ROWS * ROW_BYTES);
    for (int at = 0; at < ROWS * ROW_BYTES; at++) {
      rows.put(at, (byte) (at % 100));
    }
    DeviceBytes.write(device, send.address(), Memory.addressOf(rows), ROWS * ROW_BYTES);
    Reference.reachabilityFence(rows);
    DeviceBytes.fill(device, receive.address(), ROWS * ROW_BYTES, (byte) -1);
  }

  @AfterEach
  void nothingIsLeaked() {
    exchange.close();
    window.close(hosts);
    hosts.close();
    send.close();
    receive.close();
    pool.close();
    stream.close();
    device.close();
    DoubleLibraries.assertClean();
  }

  /** The content of the written memory. */
  private ByteBuffer received() {
    ByteBuffer found = ByteBuffer.allocateDirect(ROWS * ROW_BYTES);
    DeviceBytes.read(device, Memory.addressOf(found), receive.address(), ROWS * ROW_BYTES);
    return found;
  }

  private void run(long from, long rows, long to) {
    RaggedLayout layout =
        new RaggedLayout(
            1, new long[] {from}, new long[] {rows}, new long[] {to}, new long[] {rows});
    long[] room = {ROWS};
    exchange.enqueue(
        window,
        new PeerRows(send.address(), ROWS, ROW_BYTES, layout, new long[1], room),
        Duration.ofSeconds(30));
    assertThat(stream.awaitIdle(Deadline.after(LONG))).isTrue();
    exchange.release();
  }

  @Test
  void rowsArriveOnlyAtTheirPlaces() {
    run(10, 20, 70);
    run(0, 0, 100);
    exchange.check(window);
    ByteBuffer found = received();
    for (int at = 0; at < ROWS * ROW_BYTES; at++) {
      boolean written = at >= 70 * ROW_BYTES && at < 90 * ROW_BYTES;
      assertThat(found.get(at))
          .isEqualTo(written ? (byte) ((at - 60 * ROW_BYTES) % 100) : (byte) -1);
    }
  }

  /** Nothing is read or written outside the given memory. */
  @ParameterizedTest
  @CsvSource({
    "-1, 5, 0",
    "0, -1, 0",
    "0, 5, -1",
    "96, 5, 0",
    "0, 5, 96",
    "0, 101, 0",
    "9223372036854775807, 5, 0",
    "0, 5, 9223372036854775807",
    "5, 9223372036854775807, 5"
  })
  void rowsOutOfRangeAreNotAccessed(long from, long rows, long to) {
    run(from, rows, to);
    CollectiveException failure =
        catchThrowableOfType(CollectiveException.class, () -> exchange.check(window));
    assertThat(failure.kind()).isEqualTo(Kind.INVALID);
    assertThat(failure).hasMessage("update 0 of rank 0 reads or writes rows that do not exist");
    ByteBuffer found = received();
    for (int at = 0; at < ROWS * ROW_BYTES; at++) {
      assertThat(found.get(at)).isEqualTo((byte) -1);
    }
  }
}
