package io.weft.collectives.nccl;

import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import io.weft.memory.Bytes;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * Asks the driver and NCCL about themselves. The capability probe only reads files; this class
 * calls the libraries. A broken driver can end or hang the process, so use it only on request.
 * Stateless.
 */
public final class GpuReport {
  private GpuReport() {}

  /** One line each for the driver, every GPU and NCCL, with the reason if one cannot be used. */
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
