package io.weft.device.probe;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Probes the files of the NVIDIA driver. */
final class CudaProbe {
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
      return Finding.no(VERSION + " does not exist: the NVIDIA kernel module is not loaded");
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

  Finding peerAccess() throws IOException {
    return needsSeveral("reading each other's memory");
  }

  Finding multicast() throws IOException {
    return needsSeveral("multicast");
  }

  /** Only the driver knows more than the number of GPUs, and the probe does not call it. */
  private Finding needsSeveral(String what) throws IOException {
    Finding devices = devices();
    if (!devices.isAvailable()) {
      return Finding.no("no GPU: " + devices.reason());
    }
    int count = models().size();
    return count < 2
        ? Finding.no("one GPU has no other: " + devices.reason())
        : Finding.no(
            "unknown: " + what + " between " + count + " GPUs is known to the CUDA runtime only");
  }
}
