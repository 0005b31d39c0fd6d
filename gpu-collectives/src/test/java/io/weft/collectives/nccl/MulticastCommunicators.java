package io.weft.collectives.nccl;

import static org.assertj.core.api.Assertions.assertThat;

import io.weft.collectives.Algorithm;
import io.weft.collectives.AllGather;
import io.weft.collectives.Broadcast;
import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.Operation;
import io.weft.collectives.TypedBuffer;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.device.cuda.VirtualMemory;
import io.weft.memory.Memory;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * Communicators whose all-gathers and broadcasts are written by multicast. Places have any
 * alignment, and the bytes around them must not change. Buffers in host memory are copied there and
 * back, because the double's device memory is host memory too.
 */
public final class MulticastCommunicators {
  private static final long BYTES = 16 << 20;
  private static final int GUARD = 64;
  private static final byte MARK = (byte) 0xa5;

  private MulticastCommunicators() {}

  /** Ranks on the GPUs with their numbers, all of which have multicast. */
  public static CommunicatorFactory of(CommunicatorFactory nccl) {
    return (bootstrap, options) -> share((DeviceCommunicator) nccl.create(bootstrap, options));
  }

  /**
   * Closes the communicator together with the result; a communicator of one rank is returned
   * unchanged.
   */
  public static Communicator share(DeviceCommunicator nccl) {
    return nccl.nranks() == 1
        ? nccl
        : (Communicator)
            Proxy.newProxyInstance(
                Communicator.class.getClassLoader(),
                new Class<?>[] {Communicator.class},
                new Sharing(nccl));
  }

  private static final class Sharing implements InvocationHandler {
    private final DeviceCommunicator nccl;
    private final CudaMemoryPool sendPool;
    private final CudaMemoryPool receivePool;
    private final CudaMemory send;
    private final CudaMemory receive;
    private final SharedWindow window;
    private long operations;

    private Sharing(DeviceCommunicator nccl) {
      CudaDevice device = GpuDoubles.device(nccl.rank());
      this.nccl = nccl;
      this.sendPool = CudaMemoryPool.open(device, CudaMemoryPool.Kind.DEVICE, 2 * BYTES);
      this.receivePool = CudaMemoryPool.open(device, VirtualMemory.forMulticast(device), 2 * BYTES);
      this.send = sendPool.take(BYTES);
      this.receive = receivePool.take(BYTES);
      try {
        this.window = nccl.shareByMulticast(receive);
      } catch (RuntimeException e) {
        closeMemory();
        throw e;
      }
    }

    private void closeMemory() {
      send.close();
      receive.close();
      sendPool.close();
      receivePool.close();
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      Operation operation = operation(method, arguments);
      if (operation != null) {
        exchange(operation);
        return null;
      }
      try {
        if (method.getName().equals("close")) {
          window.close();
          closeMemory();
        }
        return method.invoke(nccl, arguments);
      } catch (InvocationTargetException e) {
        throw e.getCause();
      }
    }

    private static Operation operation(Method method, Object[] arguments) {
      return switch (method.getName()) {
        case "allGather" -> new AllGather((TypedBuffer) arguments[0], (TypedBuffer) arguments[1]);
        case "broadcast" ->
            new Broadcast(
                (TypedBuffer) arguments[0], (TypedBuffer) arguments[0], (int) arguments[1]);
        case "run" -> arguments[0] instanceof Broadcast each ? each : null;
        default -> null;
      };
    }

    /** All ranks receive at the same place, and send from any place. */
    private void exchange(Operation operation) {
      operation.check(nccl.rank(), nccl.nranks());
      operations++;
      TypedBuffer from = operation.buffers().get(0);
      TypedBuffer to = operation.buffers().get(1);
      long offset = GUARD + operations * 7 % 61;
      TypedBuffer target = TypedBuffer.of(new DeviceBuffer(receive), offset, to.type(), to.count());
      long inside = from.address() - to.address();
      TypedBuffer source =
          inside >= 0 && inside < to.bytes()
              ? target.slice(inside / to.type().bytes(), from.count())
              : TypedBuffer.of(
                  new DeviceBuffer(send),
                  (operations * 3 + nccl.rank()) % 23,
                  from.type(),
                  from.count());
      Memory.setMemory(receive.address(), offset + to.bytes() + GUARD, MARK);
      Memory.copy(from.address(), source.address(), from.bytes());
      nccl.barrier();
      long before = byMulticast();
      nccl.run(
          operation instanceof Broadcast each
              ? new Broadcast(source, target, each.root())
              : new AllGather(source, target));
      assertThat(byMulticast() - before).isEqualTo(to.count() == 0 ? 0 : 1);
      Memory.copy(target.address(), to.address(), to.bytes());
      checkGuards(offset, to.bytes());
    }

    private long byMulticast() {
      return nccl.metrics().total(Algorithm.MULTICAST).calls();
    }

    private void checkGuards(long offset, long bytes) {
      for (long at = 0; at < offset; at++) {
        assertThat(Memory.getByte(receive.address() + at)).isEqualTo(MARK);
      }
      for (long at = offset + bytes; at < offset + bytes + GUARD; at++) {
        assertThat(Memory.getByte(receive.address() + at)).isEqualTo(MARK);
      }
    }
  }
}
