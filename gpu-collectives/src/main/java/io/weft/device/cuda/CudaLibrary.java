package io.weft.device.cuda;

import com.sun.jna.Pointer;
import io.weft.device.NativeBinding;
import io.weft.device.UnavailableLibraryException;
import io.weft.device.probe.LibraryLocation;
import io.weft.device.probe.ProbeOptions;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The CUDA driver of this process. The first caller loads it, and it stays loaded. Thread-safe. */
public final class CudaLibrary {
  /** The oldest driver API with all functions that Weft calls; 12080 means 12.8. */
  static final int OLDEST_DRIVER = 12000;

  static final int SUCCESS = 0;
  static final int NOT_READY = 600;
  private static final int NO_DEVICE = 100;

  /** Whether a device has multicast. */
  private static final int MULTICAST = 132;

  private static final Logger LOG = LoggerFactory.getLogger(CudaLibrary.class);
  private static final int NAME_BYTES = 256;

  private static CudaLibrary loaded;

  /** Libraries that were started and did not work. They stay in the process. */
  private static final Set<Path> REJECTED = new LinkedHashSet<>();

  private final Path path;
  private final int version;

  private CudaLibrary(Path path, int version) {
    this.path = path;
    this.version = version;
  }

  /**
   * Describes a GPU.
   *
   * @param ordinal its number in this process, which CUDA_VISIBLE_DEVICES changes
   * @param uuid its identity, the same in every process
   * @param name the name of the model
   * @param memoryBytes its total memory
   */
  public record GpuDescription(int ordinal, UUID uuid, String name, long memoryBytes) {}

  /**
   * Loads the driver's library and starts the driver. If a library does not work, the next one is
   * tried, because a library path may contain one that does not belong to the kernel's driver.
   *
   * @throws UnavailableLibraryException with the reason: no library, no JNA, an old driver, no GPU
   */
  public static synchronized CudaLibrary load(ProbeOptions options) {
    if (loaded == null) {
      loaded = firstThatWorks(options);
    }
    return loaded;
  }

  private static CudaLibrary firstThatWorks(ProbeOptions options) {
    List<RuntimeException> failures = new ArrayList<>();
    for (Path path : LibraryLocation.allOfCuda(options)) {
      try {
        CudaLibrary library = loadAndStart(path);
        failures.forEach(
            failure -> LOG.warn("{} is used, because {}", library, failure.getMessage()));
        return library;
      } catch (UnavailableLibraryException | CudaException e) {
        failures.add(e);
      }
    }
    if (failures.isEmpty()) {
      throw new UnavailableLibraryException(LibraryLocation.ofCuda(options).missing());
    }
    throw new UnavailableLibraryException(
        failures.stream().map(Throwable::getMessage).collect(Collectors.joining("; ")),
        failures.get(0));
  }

  private static CudaLibrary loadAndStart(Path path) {
    NativeBinding.bind(path, CudaFunctions.class);
    NativeBinding.bind(path, CudaGraphFunctions.class);
    NativeBinding.bind(path, CudaPeerFunctions.class);
    CudaModule.bindLoading(path);
    try {
      CudaLibrary started = start(path);
      // It may have failed before, and works now.
      REJECTED.remove(path);
      return started;
    } catch (UnavailableLibraryException | CudaException e) {
      REJECTED.add(path);
      throw e;
    }
  }

  /**
   * Returns why NCCL cannot be used beside the loaded driver. NCCL loads libcuda by its name, and
   * gets the first one of this process. A library that was started cannot be unloaded safely.
   */
  public static synchronized Optional<String> obstacleForNccl() {
    return loaded == null || REJECTED.isEmpty()
        ? Optional.empty()
        : Optional.of(
            "NCCL would use "
                + REJECTED.iterator().next()
                + ", which does not work. Remove it from LD_LIBRARY_PATH, or put "
                + loaded.path
                + " before it");
  }

  static CudaLibrary start(Path path) {
    int[] version = new int[1];
    check(CudaFunctions.cuDriverGetVersion(version), "cuDriverGetVersion");
    if (version[0] < OLDEST_DRIVER) {
      throw new UnavailableLibraryException(
          "the NVIDIA driver of "
              + path
              + " supports CUDA "
              + describe(version[0])
              + ", Weft needs "
              + describe(OLDEST_DRIVER)
              + " (driver 525) or newer");
    }
    int result = CudaFunctions.cuInit(0);
    if (result == NO_DEVICE) {
      throw new UnavailableLibraryException(
          "the NVIDIA driver of "
              + path
              + " shows no GPU to this process; CUDA_VISIBLE_DEVICES"
              + " may hide them");
    }
    check(result, "cuInit of " + path);
    return new CudaLibrary(path, version[0]);
  }

  /** The library's file. */
  Path path() {
    return path;
  }

  /** A version such as "12.8". */
  public String version() {
    return describe(version);
  }

  private static String describe(int version) {
    return version / 1000 + "." + version % 1000 / 10;
  }

  /** All GPUs that this process sees, by ordinal. */
  public List<GpuDescription> gpus() {
    return visible();
  }

  /**
   * Whether the driver offers multicast on a GPU. With multicast, which needs NVSwitch, one write
   * reaches the memory of several GPUs.
   *
   * @param ordinal the number of a GPU that this process sees
   */
  public boolean hasMulticast(int ordinal) {
    return attribute(handle(ordinal), MULTICAST) != 0;
  }

  static List<GpuDescription> visible() {
    int[] count = new int[1];
    check(CudaFunctions.cuDeviceGetCount(count), "cuDeviceGetCount");
    List<GpuDescription> gpus = new ArrayList<>();
    for (int ordinal = 0; ordinal < count[0]; ordinal++) {
      gpus.add(gpu(ordinal));
    }
    return gpus;
  }

  private static GpuDescription gpu(int ordinal) {
    int device = handle(ordinal);
    byte[] name = new byte[NAME_BYTES];
    check(CudaFunctions.cuDeviceGetName(name, name.length, device), "cuDeviceGetName");
    byte[] uuid = new byte[16];
    check(CudaFunctions.cuDeviceGetUuid_v2(uuid, device), "cuDeviceGetUuid");
    long[] bytes = new long[1];
    check(CudaFunctions.cuDeviceTotalMem_v2(bytes, device), "cuDeviceTotalMem");
    int length = 0;
    while (length < name.length && name[length] != 0) {
      length++;
    }
    ByteBuffer halves = ByteBuffer.wrap(uuid);
    return new GpuDescription(
        ordinal,
        new UUID(halves.getLong(), halves.getLong()),
        new String(name, 0, length, StandardCharsets.UTF_8),
        bytes[0]);
  }

  static int handle(int ordinal) {
    int[] device = new int[1];
    check(CudaFunctions.cuDeviceGet(device, ordinal), "cuDeviceGet(" + ordinal + ")");
    return device[0];
  }

  /** The value of an attribute of the device of this handle. */
  static int attribute(int handle, int attribute) {
    int[] value = new int[1];
    check(
        CudaPeerFunctions.cuDeviceGetAttribute(value, attribute, handle),
        "cuDeviceGetAttribute of cuda:" + handle);
    return value[0];
  }

  /**
   * Opens a GPU.
   *
   * @throws CudaException when there is no such GPU, or it does not work
   */
  public CudaDevice open(int ordinal) {
    int handle = handle(ordinal);
    return CudaDevice.open(gpu(ordinal), handle);
  }

  /**
   * Opens the GPU with this identity.
   *
   * @throws IllegalArgumentException when this process does not see it
   */
  public CudaDevice open(UUID uuid) {
    List<GpuDescription> gpus = gpus();
    for (GpuDescription gpu : gpus) {
      if (gpu.uuid().equals(uuid)) {
        return open(gpu.ordinal());
      }
    }
    throw new IllegalArgumentException("no GPU is " + uuid + "; this process sees " + gpus);
  }

  /** Throws the error of a result that is not success. */
  static void check(int result, String what) {
    if (result != SUCCESS) {
      throw new CudaException(result, name(result), what);
    }
  }

  private static String name(int code) {
    long[] name = new long[1];
    return CudaFunctions.cuGetErrorName(code, name) == SUCCESS && name[0] != 0
        ? new Pointer(name[0]).getString(0)
        : "an error without a name in the driver";
  }

  @Override
  public String toString() {
    return "CUDA driver " + version() + " in " + path;
  }
}
