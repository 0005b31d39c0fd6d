package io.weft.transfers;

import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;
import io.weft.device.probe.ProbeOptions;
import java.nio.file.Path;

/**
 * Prints the driver, the GPUs and the version of NCCL, each in a line. Exits with status 3 and the
 * reason if there is no GPU. Run by {@code tests/gpu/run}.
 */
final class GpuLook {
  private static final int NONE = 3;

  private GpuLook() {}

  /**
   * Runs the search.
   *
   * @param args the file of NCCL; if there is none, NCCL is searched
   */
  public static void main(String[] args) {
    try {
      CudaLibrary library = TestGpus.cuda();
      System.out.println(library);
      library.gpus().forEach(System.out::println);
    } catch (UnavailableLibraryException | CudaException e) {
      System.out.println("No GPU can be used: " + e.getMessage());
      System.exit(NONE);
    }
    try {
      ProbeOptions options = TestGpus.options();
      System.out.println(
          NcclLibrary.load(args.length == 0 ? options : options.withNcclLibrary(Path.of(args[0]))));
    } catch (UnavailableLibraryException e) {
      System.out.println("NCCL cannot be used: " + e.getMessage());
    }
  }
}
