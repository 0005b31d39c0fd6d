package io.weft.collectives.nccl;

import io.weft.collectives.Communicator;
import io.weft.collectives.CommunicatorFactory;
import io.weft.collectives.RaggedAllToAll;
import io.weft.collectives.RaggedLayout;
import io.weft.collectives.TypedBuffer;
import io.weft.device.cuda.CudaDevice;
import io.weft.device.cuda.CudaMemory;
import io.weft.device.cuda.CudaMemoryPool;
import io.weft.testgpus.DeviceBytes;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * Communicators whose ragged all-to-alls are written by the devices. Buffers in host memory are
 * copied there and back.
 */
public final class SharingCommunicators {
  private static final long BYTES = 16 << 20;

  private SharingCommunicators() {}

  /** Ranks on the GPUs with their numbers. */
  public static CommunicatorFactory of(CommunicatorFactory nccl) {
    return (bootstrap, options) -> share((DeviceCommunicator) nccl.create(bootstrap, options));
  }

  /** Closes the communicator together with the result. */
  public static Communicator share(DeviceCommunicator nccl) {
    return (Communicator)
        Proxy.newProxyInstance(
            Communicator.class.getClassLoader(),
            new Class<?>[] {Communicator.class},
            new Sharing(nccl));
  }

  private static final class Sharing implements InvocationHandler {
    private final DeviceCommunicator nccl;
    private final CudaMemoryPool pool;
    private final CudaMemory send;
    private final CudaMemory receive;
    private final SharedWindow window;

    private Sharing(DeviceCommunicator nccl) {
      this.nccl = nccl;
      this.pool =
          CudaMemoryPool.open(
              GpuDoubles.device(nccl.rank()), CudaMemoryPool.Kind.DEVICE, 3 * BYTES);
      this.send = pool.take(BYTES);
      this.receive = pool.take(BYTES);
      this.window = nccl.share(receive);
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
      if (method.getName().equals("raggedAllToAll")) {
        exchange(
            (TypedBuffer) arguments[0], (TypedBuffer) arguments[1], (RaggedLayout) arguments[2]);
        return null;
      }
      try {
        if (method.getName().equals("close")) {
          window.close();
          send.close();
          receive.close();
          pool.close();
        }
        return method.invoke(nccl, arguments);
      } catch (InvocationTargetException e) {
        throw e.getCause();
      }
    }

    /** Every rank receives at another offset, and not always at a multiple of 16. */
    private void exchange(TypedBuffer from, TypedBuffer to, RaggedLayout layout) {
      CudaDevice device = GpuDoubles.device(nccl.rank());
      new RaggedAllToAll(from, to, layout).check(nccl.rank(), nccl.nranks());
      TypedBuffer source = TypedBuffer.of(new DeviceBuffer(send), 0, from.type(), from.count());
      long offset = 8L * nccl.rank() * from.type().bytes();
      TypedBuffer target = TypedBuffer.of(new DeviceBuffer(receive), offset, to.type(), to.count());
      DeviceBytes.write(device, source.address(), from.address(), from.bytes());
      DeviceBytes.write(device, target.address(), to.address(), to.bytes());
      nccl.raggedAllToAll(source, target, layout);
      DeviceBytes.read(device, to.address(), target.address(), to.bytes());
    }
  }
}
