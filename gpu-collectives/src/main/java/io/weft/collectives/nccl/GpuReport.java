package io.weft.collectives.nccl;

import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * What the driver and NCCL say of themselves when they are called, beyond what the capability probe
 * reads in files. A driver that is broken can end or hang the process: only for who asks for it.
 * Stateless.
 */
public final class GpuReport {
  private GpuReport() {}

  /** One line each: the driver, every GPU, NCCL; where something cannot be used, why. */
  public static List<String> lines(ProbeOptions options) {
    List<String> lines = new ArrayList<>(asked("the driver", () -> driver(options)));
    lines.addAll(asked("NCCL", () -> nccl(options)));
    return lines;
  }

  private static List<String> driver(ProbeOptions options) {
    CudaLibrary library = CudaLibrary.load(options);
    List<String> lines = new ArrayList<>();
    lines.add(library.toString());
    library
        .gpus()
        .forEach(
            gpu ->
                lines.add(
                    "cuda:%d %s, %s, uuid %s, %s multicast"
                        .formatted(
                            gpu.ordinal(),
                            gpu.name(),
                            Bytes.text(gpu.memoryBytes()),
                            gpu.uuid(),
                            library.hasMulticast(gpu.ordinal()) ? "with" : "without")));
    return lines;
  }

  private static List<String> nccl(ProbeOptions options) {
    NcclLibrary library = NcclLibrary.load(options);
    return List.of(
        library.toString(), "windows of NCCL: " + library.whyNoWindows().orElse("available"));
  }

  private static List<String> asked(String whom, Supplier<List<String>> question) {
    try {
      return question.get();
    } catch (UnavailableLibraryException | CudaException e) {
      return List.of(whom + " cannot be used: " + e.getMessage());
    }
  }
}
