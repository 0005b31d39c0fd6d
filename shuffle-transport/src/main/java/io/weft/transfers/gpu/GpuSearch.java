package io.weft.transfers.gpu;

import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.Deadline;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.cuda.CudaLibrary.GpuDescription;
import io.weft.device.probe.Capabilities;
import io.weft.device.probe.Capability;
import io.weft.device.probe.LibraryLocation;
import io.weft.device.probe.ProbeOptions;
import io.weft.shuffle.peer.GpuEnd;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Finds the GPU of this executor and its NCCL. The driver is loaded only if its library and JNA are
 * there, and NCCL only if the capabilities include it. Files alone prove nothing: WSL and gVisor
 * have none in /proc. No context is created, so the search takes no GPU memory.
 */
public final class GpuSearch {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  private GpuSearch() {}

  /**
   * Searches for at most 30 s.
   *
   * @param machine the capabilities of this machine
   * @param libraries where the driver and NCCL are
   * @param wanted the GPU's number in this process, or the uuid of the GPU or of its MIG slice;
   *     empty for the first GPU
   * @return the GPU, or the reason why there is none
   */
  public static GpuEnd find(Capabilities machine, ProbeOptions libraries, String wanted) {
    if (!machine.has(Capability.JNA)) {
      return GpuEnd.without(Capability.JNA + ": " + machine.reason(Capability.JNA));
    }
    boolean isKnown = machine.has(Capability.CUDA_DEVICES);
    String unknown = Capability.CUDA_DEVICES + ": " + machine.reason(Capability.CUDA_DEVICES);
    if (!isKnown && LibraryLocation.ofCuda(libraries).path().isEmpty()) {
      return GpuEnd.without(unknown);
    }
    GpuEnd found = ask(() -> search(machine, libraries, wanted), TIMEOUT);
    return isKnown || found.isThere() ? found : GpuEnd.without(unknown + "; " + found.obstacle());
  }

  /** A request to native libraries, which may hang. */
  interface Request {
    GpuEnd answer();
  }

  static GpuEnd ask(Request request, Duration timeout) {
    FutureTask<GpuEnd> task = new FutureTask<>(request::answer);
    Thread thread = new Thread(task, "weft-gpu-search");
    thread.setDaemon(true);
    thread.start();
    try {
      return task.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      return GpuEnd.without(
          "the NVIDIA driver or NCCL did not answer within "
              + Deadline.describe(timeout.toNanos()));
    } catch (ExecutionException e) {
      return GpuEnd.without("the NVIDIA driver or NCCL cannot be used: " + e.getCause());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return GpuEnd.without("the search for a GPU was interrupted");
    }
  }

  private static GpuEnd search(Capabilities machine, ProbeOptions libraries, String wanted) {
    try {
      List<GpuDescription> gpus = CudaLibrary.load(libraries).gpus();
      for (GpuDescription gpu : gpus) {
        if (wanted.isEmpty() || isMeant(gpu, wanted)) {
          return withNccl(gpu, machine, libraries);
        }
      }
      return GpuEnd.without(
          "the executor was given GPU %s, but its process sees %d: %s"
              .formatted(wanted, gpus.size(), gpus));
    } catch (UnavailableLibraryException | CudaException e) {
      return GpuEnd.without(e.getMessage());
    }
  }

  private static GpuEnd withNccl(GpuDescription gpu, Capabilities machine, ProbeOptions libraries) {
    String uuid = gpu.uuid().toString();
    String obstacle = Capability.NCCL + ": " + machine.reason(Capability.NCCL);
    if (machine.has(Capability.NCCL)) {
      try {
        NcclLibrary nccl = NcclLibrary.load(libraries);
        return GpuEnd.of(uuid, gpu.ordinal(), gpu.name(), nccl.version())
            .sharing(nccl.sharesGpus(libraries.environment()));
      } catch (UnavailableLibraryException e) {
        obstacle = e.getMessage();
      }
    }
    return new GpuEnd(uuid, gpu.ordinal(), gpu.name(), "", obstacle);
  }

  private static boolean isMeant(GpuDescription gpu, String wanted) {
    return wanted.equals(Integer.toString(gpu.ordinal()))
        || wanted.replaceFirst("^(GPU|MIG)-", "").equalsIgnoreCase(gpu.uuid().toString());
  }
}
