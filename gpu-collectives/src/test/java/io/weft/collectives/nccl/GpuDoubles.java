package io.weft.collectives.nccl;

import io.weft.collectives.CommunicatorFactory;
import io.weft.device.cuda.CudaDevice;
import io.weft.testgpus.TestMachine;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Communicators of NCCL on the GPUs of the {@link TestMachine}: rank n has GPU n. */
public final class GpuDoubles {
  private static final Map<Integer, CudaDevice> DEVICES = new ConcurrentHashMap<>();
  private static final Duration LINGER = Duration.ofMillis(500);

  private GpuDoubles() {}

  /** Whether this process was started with the doubles. */
  public static boolean isForThisProcess() {
    return TestMachine.isForThisProcess();
  }

  /** The device of a rank, which stays open until {@link #closeDevices}. */
  public static CudaDevice device(int ordinal) {
    return DEVICES.computeIfAbsent(ordinal, TestMachine::open);
  }

  /** Closes the devices that {@link #device} opened. */
  public static void closeDevices() {
    DEVICES.values().forEach(CudaDevice::close);
    DEVICES.clear();
  }

  /** A factory for one rank on the GPU with this number. */
  public static CommunicatorFactory factory(int ordinal, CommunicatorFactory hosts) {
    NcclOptions options = NcclOptions.on(device(ordinal)).withLinger(LINGER);
    return new NcclCommunicators(TestMachine.options(), options, hosts);
  }

  /**
   * Skips the test, with the reason, if there are more ranks than GPUs; two may share one where
   * NCCL lets them.
   */
  static void assumeRanks(int nranks) {
    boolean shareOne =
        nranks == 2
            && TestMachine.count() == 1
            && NcclLibrary.load(TestMachine.options())
                .sharesGpus(TestMachine.options().environment());
    if (!shareOne) {
      TestMachine.assume(nranks);
    }
  }

  /**
   * A factory for all ranks of this process; skips the test if there are more ranks than {@link
   * #assumeRanks} takes.
   */
  static CommunicatorFactory factory(CommunicatorFactory hosts) {
    TestMachine.cuda();
    return (bootstrap, options) -> {
      assumeRanks(bootstrap.nranks());
      return factory(bootstrap.rank(), hosts).create(bootstrap, options);
    };
  }
}
