package io.weft.device.cuda;

import io.weft.device.NativeBinding;
import io.weft.device.UnavailableLibraryException;
import java.nio.file.Path;
import java.util.Optional;

/** Checks whether multicast can be used. Thread-safe. */
public final class MulticastSupport {
  private static final int MULTICAST = 132;

  /** Whether the driver gives file descriptors for memory. */
  static final int DESCRIPTORS = 103;

  private static final int COMPUTE_CAPABILITY = 75;

  /**
   * The first compute capability with multicast instructions, for which Weft's kernels are
   * compiled.
   */
  private static final int OLDEST_GPU = 9;

  private static volatile String missing = "the driver was not loaded";

  private MulticastSupport() {}

  /** Binds the functions; an older driver is used without them. */
  static void bind(Path library) {
    try {
      NativeBinding.bind(library, CudaMulticastFunctions.class);
      missing = "";
    } catch (UnavailableLibraryException e) {
      missing = e.getMessage();
    }
  }

  /** Whether the driver offers multicast on the device of this handle. */
  static boolean isOffered(int handle) {
    return CudaLibrary.attribute(handle, MULTICAST) != 0;
  }

  /** The reason why a GPU cannot write by multicast; empty if it can. */
  public static Optional<String> whyNot(CudaDevice device) {
    if (!missing.isEmpty()) {
      return Optional.of(missing);
    }
    int handle = CudaLibrary.handle(device.description().ordinal());
    if (!isOffered(handle)) {
      return Optional.of(
          "the driver offers no multicast on "
              + device
              + ": the GPU is not connected by an NVSwitch with multicast, or that is not set up");
    }
    if (CudaLibrary.attribute(handle, DESCRIPTORS) == 0) {
      return Optional.of("the driver gives no file descriptors for memory of " + device);
    }
    int capability = CudaLibrary.attribute(handle, COMPUTE_CAPABILITY);
    return capability >= OLDEST_GPU
        ? Optional.empty()
        : Optional.of(
            device
                + " is of compute capability "
                + capability
                + ", multicast needs "
                + OLDEST_GPU
                + ".0 or newer");
  }

  static void require(CudaDevice device) {
    whyNot(device)
        .ifPresent(
            reason -> {
              throw new IllegalArgumentException(reason);
            });
  }
}
