package io.weft.tests.application;

import com.sun.jna.Library;
import com.sun.jna.Native;
import io.weft.device.Deadline;
import io.weft.device.Event;
import io.weft.device.Lane.Priority;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaEvent.CudaMark;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.CudaStream;
import io.weft.device.cuda.DeviceUploads;
import io.weft.memory.Memory;
import io.weft.spark.gpu.ExecutorGpu;
import io.weft.spark.gpu.SharedGpu;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/** GPU operations of a test's task on its executor's GPU. For its thread. */
final class TestGpu implements AutoCloseable {
  private static final Duration TIMEOUT = Duration.ofMinutes(3);
  private static final int TEXT_BYTES = 16_384;

  private final SharedGpu gpu = ExecutorGpu.current().open();
  private final DeviceUploads uploads = gpu.uploads("test-upload");
  private final CudaMemoryPool pinned;
  private final CudaStream stream;
  private final BounceBuffers bounce;

  /** Functions of the double of libcuda that only tests call. */
  public interface Controls extends Library {
    int cudaDoubleViolations(byte[] text, int size);
  }

  /** Uploaded memory and the event of the upload. */
  record Uploaded(CudaMemory memory, Event event) {}

  TestGpu() {
    CudaDevice device = gpu.device();
    pinned = CudaMemoryPool.open(device, CudaMemoryPool.Kind.PINNED, 4 << 20);
    stream = CudaStream.open(device, "of a test", Priority.NORMAL);
    bounce = new BounceBuffers(stream, pinned, 1 << 20);
  }

  /** Starts to upload a direct buffer, which must stay valid until the event is recorded. */
  Uploaded upload(ByteBuffer from) {
    CudaMemory memory = gpu.take(from.remaining(), () -> {});
    DeviceUploads.Run run =
        new DeviceUploads.Run(Memory.addressOf(from) + from.position(), 0, from.remaining());
    return new Uploaded(memory, uploads.upload("a test's array", List.of(run), memory));
  }

  /** Downloads bytes of the device. */
  ByteBuffer download(long address, long bytes) {
    ByteBuffer to = ByteBuffer.allocateDirect((int) bytes).order(ByteOrder.nativeOrder());
    bounce.copyToHost(Memory.addressOf(to), address, bytes, TestGpu::await);
    return to;
  }

  /** The handle of the rank's own stream. */
  long stream() {
    return stream.handle();
  }

  private static void await(CudaMark mark) {
    Deadline deadline = Deadline.after(TIMEOUT);
    while (!mark.isReached()) {
      if (deadline.expired()) {
        throw new IllegalStateException("the device does not become idle");
      }
      LockSupport.parkNanos(20_000);
    }
  }

  /** The rules that this process has broken, according to the double of libcuda. */
  static String violations(String libcuda) {
    byte[] text = new byte[TEXT_BYTES];
    Native.load(libcuda, Controls.class).cudaDoubleViolations(text, text.length);
    return Native.toString(text);
  }

  @Override
  public void close() {
    uploads.close();
    stream.close();
    bounce.close();
    pinned.close();
  }
}
