package io.weft.transfers;

import io.weft.collectives.nccl.NcclLibrary;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.cuda.CudaException;
import io.weft.device.cuda.CudaLibrary;

/**
 * Prints the GPUs and the version of NCCL. Exits with status 3 and the reason if there is none. Run
 * by {@code tests/gpu/run}.
 */
final class GpuLook {
  private static final int NONE = 3;

  private GpuLook() {}

  /** Runs the search. */
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
      System.out.println(NcclLibrary.load(TestGpus.options()));
    } catch (UnavailableLibraryException e) {
      System.out.println("NCCL cannot be used: " + e.getMessage());
    }
  }
}
