package io.weft.device.probe;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds the capabilities of the machine. A part that fails is a "no" with the failure as its
 * reason.
 */
public final class CapabilityProbe {
  private CapabilityProbe() {}

  /** Holds the findings of this process, made at first use. */
  private static final class ThisMachine {
    private static final Capabilities FOUND = run(ProbeOptions.defaults());
  }

  /**
   * The capabilities of this machine. All code of this process that selects a path uses this
   * record; the first call probes.
   */
  public static Capabilities thisMachine() {
    return ThisMachine.FOUND;
  }

  /** The probe of one capability. */
  interface Part {
    Finding find() throws IOException;
  }

  /** Probes all capabilities. This takes milliseconds, up to a second if a library must be read. */
  public static Capabilities run(ProbeOptions options) {
    HostProbe host = new HostProbe(options);
    CudaProbe cuda = new CudaProbe(options);
    NcclProbe nccl = new NcclProbe(options);
    Map<Capability, Finding> findings = new EnumMap<>(Capability.class);
    findings.put(Capability.SHARED_MEMORY, finding(host::sharedMemory));
    findings.put(Capability.HUGE_PAGES, finding(host::hugePages));
    findings.put(Capability.PROCESSORS, finding(host::processors));
    findings.put(Capability.NETWORK, finding(host::network));
    findings.put(Capability.RDMA, finding(host::rdma));
    findings.put(Capability.CUDA_DRIVER, finding(cuda::driver));
    findings.put(Capability.CUDA_DEVICES, finding(cuda::devices));
    findings.put(Capability.NCCL, finding(nccl::library));
    findings.put(Capability.JNA, finding(JnaProbe::library));
    findings.put(Capability.PEER_ACCESS, finding(cuda::peerAccess));
    return new Capabilities(options.sharedFolder(), findings);
  }

  static Finding finding(Part part) {
    try {
      return part.find();
    } catch (IOException | UncheckedIOException | SecurityException | IllegalStateException e) {
      return Finding.no("the probe failed: " + e);
    }
  }

  /** Finds JNA without loading a class of it. */
  static final class JnaProbe {
    private static final String CLASS_FILE = "com/sun/jna/Native.class";

    private JnaProbe() {}

    static Finding library() {
      URL found = JnaProbe.class.getClassLoader().getResource(CLASS_FILE);
      if (found == null) {
        return Finding.no("net.java.dev.jna:jna is not on the class path, so no GPU can be used");
      }
      String place = found.toString();
      return Finding.yes(place.substring(0, place.length() - CLASS_FILE.length()));
    }
  }

  /** Probes the files of the NVIDIA driver. */
  static final class CudaProbe {
    private static final String OLDEST = "525";
    private static final String VERSION = "/proc/driver/nvidia/version";
    private static final String DEVICES = "/proc/driver/nvidia/gpus";
    private static final Pattern DRIVER =
        Pattern.compile("Kernel Module(?: for \\S+)?\\s+(\\d+(?:\\.\\d+)+)");

    private final ProbeOptions options;

    CudaProbe(ProbeOptions options) {
      this.options = options;
    }

    Finding driver() throws IOException {
      Path version = options.at(VERSION);
      if (!Files.isReadable(version)) {
        return Finding.no(VERSION + " does not exist: " + withoutVersion());
      }
      Matcher matcher = DRIVER.matcher(Files.readString(version));
      boolean matched = matcher.find();
      String number = matched ? matcher.group(1) : "of unknown version";
      LibraryLocation library = LibraryLocation.ofCuda(options);
      if (library.path().isEmpty()) {
        return Finding.no("driver " + number + ", but " + library.missing());
      }
      return matched && !Versions.isAtLeast(number, OLDEST)
          ? Finding.no("driver " + number + " is older than " + OLDEST + ", the first for CUDA 12")
          : Finding.yes("driver " + number + ", " + library.path().get());
    }

    /** WSL and gVisor hide the file of a kernel module that works. */
    private String withoutVersion() {
      return LibraryLocation.ofCuda(options)
          .path()
          .map(library -> "the kernel module is not loaded or hidden, only " + library + " knows")
          .orElse("the NVIDIA kernel module is not loaded");
    }

    Finding devices() throws IOException {
      Finding driver = driver();
      if (!driver.isAvailable()) {
        return Finding.no("no driver: " + driver.reason());
      }
      List<String> models = models();
      return models.isEmpty()
          ? Finding.no(DEVICES + " is empty: the driver shows no GPU")
          : Finding.yes(
              models.size() + " x " + String.join(", ", models.stream().distinct().toList()));
    }

    private List<String> models() throws IOException {
      List<String> models = new ArrayList<>();
      for (String bus : HostProbe.names(options.at(DEVICES))) {
        Path information = options.at(DEVICES).resolve(bus).resolve("information");
        models.add(Files.isReadable(information) ? model(information) : "unknown model");
      }
      return models;
    }

    private static String model(Path information) throws IOException {
      for (String line : Files.readAllLines(information)) {
        if (line.startsWith("Model:")) {
          return line.substring("Model:".length()).strip();
        }
      }
      return "unknown model";
    }

    /** Only the driver knows more than the number of GPUs, and the probe does not call it. */
    Finding peerAccess() throws IOException {
      Finding devices = devices();
      if (!devices.isAvailable()) {
        return Finding.no("no GPU: " + devices.reason());
      }
      int count = models().size();
      return count < 2
          ? Finding.no("one GPU has no other: " + devices.reason())
          : Finding.no(
              "unknown: reading each other's memory between "
                  + count
                  + " GPUs is known to the CUDA runtime only");
    }
  }

  /**
   * Finds NCCL and its version without loading it. The version is in the name of the linked file,
   * or in the text that the library prints at its start.
   */
  static final class NcclProbe {
    private static final Pattern IN_NAME = Pattern.compile("libnccl\\.so\\.(\\d+\\.\\d+\\.\\d+)");
    private static final Pattern IN_TEXT = Pattern.compile("NCCL version (\\d+\\.\\d+\\.\\d+)");

    /** The oldest version that is bound, see io.weft.collectives.nccl.NcclLibrary. */
    private static final String OLDEST = "2.19.3";

    private static final int PIECE_BYTES = 1 << 20;
    private static final int MAX_TEXT = 64;
    private static final long MAX_BYTES = 1L << 30;

    private final ProbeOptions options;

    NcclProbe(ProbeOptions options) {
      this.options = options;
    }

    Finding library() throws IOException {
      LibraryLocation location = LibraryLocation.ofNccl(options);
      return location.path().isPresent()
          ? found(location.path().get())
          : Finding.no(location.missing());
    }

    private static Finding found(Path library) throws IOException {
      Path file = library.toRealPath();
      String version = versionInName(file).or(() -> versionInFile(file)).orElse("");
      if (version.isEmpty()) {
        return Finding.no(file + " does not say which version of NCCL it is");
      }
      return Versions.isAtLeast(version, OLDEST)
          ? Finding.yes("NCCL " + version + ", " + file)
          : Finding.no("NCCL " + version + ", " + file + ", is older than " + OLDEST);
    }

    private static Optional<String> versionInName(Path file) {
      Matcher matcher = IN_NAME.matcher(file.getFileName().toString());
      return matcher.matches() ? Optional.of(matcher.group(1)) : Optional.empty();
    }

    private static Optional<String> versionInFile(Path file) {
      try (FileChannel channel = FileChannel.open(file)) {
        ByteBuffer piece = ByteBuffer.allocate(PIECE_BYTES);
        long end = Math.min(channel.size(), MAX_BYTES);
        // Pieces overlap, so that no text is cut.
        for (long at = 0; at < end; at += PIECE_BYTES - MAX_TEXT) {
          piece.clear();
          int length = channel.read(piece, at);
          String text =
              new String(piece.array(), 0, Math.max(0, length), StandardCharsets.ISO_8859_1);
          Matcher matcher = IN_TEXT.matcher(text);
          if (matcher.find()) {
            return Optional.of(matcher.group(1));
          }
        }
        return Optional.empty();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /** Compares versions, which are numbers between dots. */
  static final class Versions {
    private Versions() {}

    /** Compares number by number; a missing number is zero. */
    static boolean isAtLeast(String version, String oldest) {
      String[] have = version.split("\\.");
      String[] need = oldest.split("\\.");
      for (int i = 0; i < Math.max(have.length, need.length); i++) {
        int difference = number(have, i) - number(need, i);
        if (difference != 0) {
          return difference > 0;
        }
      }
      return true;
    }

    private static int number(String[] numbers, int index) {
      return index < numbers.length ? Integer.parseInt(numbers[index]) : 0;
    }
  }
}
