package io.weft.device.probe;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/** Where shared libraries are looked for: the loader's path first, then the usual folders. */
final class LibraryFolders {
  private static final List<String> USUAL =
      List.of(
          "/usr/local/cuda/lib64",
          "/usr/local/cuda/compat",
          "/usr/lib/x86_64-linux-gnu",
          "/usr/lib/aarch64-linux-gnu",
          "/usr/lib64",
          "/usr/lib",
          "/usr/local/lib",
          "/usr/local/nvidia/lib64",
          "/usr/lib/wsl/lib");

  private final List<Path> folders = new ArrayList<>();

  LibraryFolders(ProbeOptions options) {
    String path = options.environment().getOrDefault("LD_LIBRARY_PATH", "");
    for (String folder : path.split(":", -1)) {
      if (folder.startsWith("/")) {
        folders.add(options.at(folder));
      }
    }
    USUAL.forEach(folder -> folders.add(options.at(folder)));
  }

  Optional<Path> find(String library) {
    return folders.stream()
        .map(folder -> folder.resolve(library))
        .filter(Files::isReadable)
        .findFirst();
  }

  /** For a message. */
  String describe() {
    return "LD_LIBRARY_PATH and " + USUAL.size() + " usual folders";
  }
}
