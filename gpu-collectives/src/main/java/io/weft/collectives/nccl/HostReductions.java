package io.weft.collectives.nccl;

import io.weft.collectives.AllReduce;
import io.weft.collectives.Communicator;
import io.weft.collectives.DataType;
import io.weft.collectives.Operation;
import io.weft.collectives.Reduce;
import io.weft.collectives.ReduceOp;
import io.weft.collectives.ReduceScatter;
import io.weft.collectives.TypedBuffer;
import io.weft.collectives.nccl.EngineStaging.BufferAccess;
import io.weft.device.cuda.BounceBuffers;
import io.weft.device.cuda.BounceBuffers.Wait;
import io.weft.device.cuda.CudaStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Runs reductions that NCCL does not compute as Weft defines them over the host's communicator.
 * Slow but exact. Confined to the thread of the stream.
 */
final class HostReductions {
  private final Communicator host;
  private final CudaStream stream;
  private final BounceBuffers bounce;

  HostReductions(Communicator host, CudaStream stream, BounceBuffers bounce) {
    this.host = host;
    this.stream = stream;
    this.bounce = bounce;
  }

  /** A buffer of the device and its copy on the host. */
  private record Copy(TypedBuffer device, TypedBuffer host) {}

  /**
   * Runs the operation on host copies of the device buffers. Returns when the copies of the results
   * to the device are enqueued.
   */
  void run(Operation operation, Wait wait) {
    List<Copy> copies = new ArrayList<>();
    Operation onHost = operation.withBuffers(buffer -> hostCopy(buffer, copies));
    for (Copy each : copies) {
      bounce.copyToHost(each.host().address(), each.device().address(), bytes(each), wait);
    }
    host.run(onHost);
    BufferAccess placement = BufferAccess.of(operation, host.rank());
    for (Copy each : copies) {
      if (placement.write().contains(each.device())) {
        bounce.copyToDevice(each.device().address(), each.host().address(), bytes(each), wait);
      }
    }
  }

  private static long bytes(Copy copy) {
    return copy.device().bytes();
  }

  /** A buffer that occurs twice is in place, so its copy is shared too. */
  @SuppressWarnings("ReferenceEquality")
  private TypedBuffer hostCopy(TypedBuffer buffer, List<Copy> copies) {
    if (buffer.count() == 0 || !stream.device().isDeviceMemory(buffer.address())) {
      return buffer;
    }
    for (Copy each : copies) {
      if (each.device() == buffer) {
        return each.host();
      }
    }
    ByteBuffer memory = ByteBuffer.allocateDirect(Math.toIntExact(buffer.bytes()));
    Copy copy = new Copy(buffer, TypedBuffer.wrap(memory, buffer.type()));
    copies.add(copy);
    return copy.host();
  }

  /**
   * Knows which operations NCCL computes as {@link ReduceOp} defines them. NCCL rounds 16-bit
   * floats at every step, averages floats before it adds them, ignores NaN in minimum and maximum,
   * and has no 16-bit integers. Stateless.
   */
  static final class NcclReductions {
    private NcclReductions() {}

    /** Whether NCCL computes this operation exactly. */
    static boolean areOfNccl(Operation operation) {
      if (operation instanceof AllReduce each) {
        return areOfNccl(each.send().type(), each.op());
      }
      if (operation instanceof Reduce each) {
        return areOfNccl(each.send().type(), each.op());
      }
      if (operation instanceof ReduceScatter each) {
        return areOfNccl(each.send().type(), each.op());
      }
      return true;
    }

    private static boolean areOfNccl(DataType type, ReduceOp op) {
      return switch (type) {
        case INT8, INT32, INT64 -> op != ReduceOp.AVERAGE;
        case FLOAT32, FLOAT64 -> op == ReduceOp.SUM || op == ReduceOp.PRODUCT;
        case INT16, FLOAT16, BFLOAT16 -> false;
      };
    }
  }
}
