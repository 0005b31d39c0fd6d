package io.weft.device.cuda;

import com.sun.jna.Native;
import io.weft.device.Event;
import io.weft.device.NativeBinding;
import io.weft.device.UnavailableLibraryException;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The kernels of one source on one device. The jar contains them as PTX, which the driver compiles
 * for the device when the module is loaded. This takes some ten milliseconds, or less if the driver
 * has a cached result, so load modules while an exchange is prepared. Thread-safe.
 *
 * <p>A driver may load a kernel at its first launch only, and waits for all work of the context
 * then. Work that waits for another GPU might never end. So {@link #kernel} loads it at once.
 */
public final class CudaModule implements AutoCloseable {
  private static final int ERROR_LOG = 5;
  private static final int ERROR_LOG_BYTES = 6;
  private static final int LOG_BYTES = 4096;
  private static final int NOT_FOUND = 500;
  private static final Pattern VERSION =
      Pattern.compile("^\\.version\\s+(\\S+)", Pattern.MULTILINE);
  private static final Pattern TARGET = Pattern.compile("^\\.target\\s+(\\S+)", Pattern.MULTILINE);

  private static volatile boolean hasLoading;

  private final CudaDevice device;
  private final String name;
  private final long handle;
  private final AtomicBoolean closed = new AtomicBoolean();
  private final AtomicBoolean unloading = new AtomicBoolean();

  /** One use for the holder, one for every running call and one for every event. */
  private final AtomicInteger uses = new AtomicInteger(1);

  private CudaModule(CudaDevice device, String name, long handle) {
    this.device = device;
    this.name = name;
    this.handle = handle;
  }

  /** Binds the function that loads kernels. Drivers before it load them when they are looked up. */
  static void bindLoading(Path library) {
    try {
      NativeBinding.bind(library, CudaLoadFunctions.class);
      hasLoading = true;
    } catch (UnavailableLibraryException e) {
      hasLoading = false;
    }
  }

  /**
   * Loads kernels of Weft.
   *
   * @param name the name of the source, such as "partition"
   * @throws CudaException when the driver refuses them; the message gives the reason and the remedy
   */
  public static CudaModule load(CudaDevice device, String name) {
    return load(device, name, ptx(name));
  }

  /** The PTX of a source, for this device. */
  static String ptx(String name) {
    try (InputStream in = CudaModule.class.getResourceAsStream(name + ".ptx")) {
      if (in == null) {
        throw new IllegalArgumentException("no kernels are called " + name);
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException("the kernels " + name + " cannot be read", e);
    }
  }

  /**
   * Loads kernels of a program.
   *
   * @param name for messages
   * @param ptx their text
   * @throws CudaException when the driver refuses them; the message gives the reason and the remedy
   */
  public static CudaModule load(CudaDevice device, String name, String ptx) {
    device.use();
    byte[] text = ptx.getBytes(StandardCharsets.UTF_8);
    byte[] image = Arrays.copyOf(text, text.length + 1);
    long[] module = new long[1];
    String what = "loading the kernels " + name + " on " + device;
    try (NativeBlock log = NativeBlock.zeroed(LOG_BYTES)) {
      int[] options = {ERROR_LOG, ERROR_LOG_BYTES};
      long[] values = {log.address(), LOG_BYTES};
      int result = CudaFunctions.cuModuleLoadDataEx(module, image, 2, options, values);
      if (result != CudaLibrary.SUCCESS) {
        CudaLibrary.check(result, what + " (" + advice(ptx, log.text()) + ")");
      }
    }
    return new CudaModule(device, name, module[0]);
  }

  private static String advice(String ptx, String log) {
    String said = log.isBlank() ? "" : "; the driver says: " + log.strip();
    return "PTX "
        + first(VERSION, ptx)
        + " for "
        + first(TARGET, ptx)
        + " and newer GPUs: an older GPU cannot run them, an older driver has to be updated"
        + said;
  }

  private static String first(Pattern pattern, String text) {
    Matcher matcher = pattern.matcher(text);
    return matcher.find() ? matcher.group(1) : "without a version";
  }

  /**
   * Loads a kernel of this module, whose one argument is a struct.
   *
   * @param kernel its name
   * @param argumentBytes the size of the struct
   * @throws IllegalArgumentException when there is no kernel of this name
   */
  public CudaKernel kernel(String kernel, int argumentBytes) {
    return new CudaKernel(this, kernel, function(kernel), argumentBytes);
  }

  /**
   * Loads a kernel of this module, for code that launches it itself.
   *
   * @param kernel its name
   * @return the driver's handle, a CUfunction; valid until this is closed
   * @throws IllegalArgumentException when there is no kernel of this name
   */
  public long function(String kernel) {
    long[] function = new long[1];
    byte[] text = Native.toByteArray(kernel, StandardCharsets.UTF_8);
    int[] result = new int[1];
    whileOpen(
        () -> {
          device.use();
          result[0] = CudaFunctions.cuModuleGetFunction(function, handle, text);
          if (result[0] == CudaLibrary.SUCCESS && hasLoading) {
            result[0] = CudaLoadFunctions.cuFuncLoad(function[0]);
          }
        });
    if (result[0] == NOT_FOUND) {
      throw new IllegalArgumentException("the kernels " + name + " have no " + kernel);
    }
    CudaLibrary.check(result[0], "loading " + kernel + " of the kernels " + name);
    return function[0];
  }

  CudaDevice device() {
    return device;
  }

  /**
   * Runs a call of the driver while the kernels are loaded.
   *
   * @throws IllegalStateException when they were unloaded
   */
  void whileOpen(Runnable call) {
    uses.incrementAndGet();
    try {
      if (closed.get()) {
        throw new IllegalStateException(this + " were closed");
      }
      call.run();
    } finally {
      endUse();
    }
  }

  /**
   * Keeps the kernels loaded until the event has ended, also after this is closed.
   *
   * @throws IllegalStateException when it was closed before
   */
  public void usedUntil(Event event) {
    whileOpen(
        () -> {
          uses.incrementAndGet();
          event.whenReleased(this::endUse);
        });
  }

  private void endUse() {
    if (uses.decrementAndGet() == 0 && closed.get() && unloading.compareAndSet(false, true)) {
      device.use();
      CudaLibrary.check(CudaFunctions.cuModuleUnload(handle), "unloading " + this);
    }
  }

  /**
   * Unloads the kernels after all {@link #usedUntil announced uses}; no other launch may still run.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      endUse();
    }
  }

  @Override
  public String toString() {
    return "the kernels " + name + " on " + device;
  }

  /** Declares the function that loads a kernel, added in CUDA 12.4. As {@link CudaFunctions}. */
  static final class CudaLoadFunctions {
    private CudaLoadFunctions() {}

    static native int cuFuncLoad(long function);
  }
}
