package io.weft.spark.feed.source;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The folder of an export in any file system of Hadoop, with the manifest as its only file. The
 * rows themselves are in shared memory. Thread-safe.
 */
final class ExportFolder {
  /** The name of the manifest in the folder. */
  static final String MANIFEST = "manifest.json";

  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path path;
  private final Configuration conf;

  private ExportFolder(Path path, Configuration conf) {
    this.path = path;
    this.conf = conf;
  }

  /** Names a folder; it need not exist. */
  static ExportFolder of(Path path, Configuration conf) {
    return new ExportFolder(path, conf);
  }

  private FileSystem files() throws IOException {
    return path.getFileSystem(conf);
  }

  /** The absolute path. */
  Path qualified() throws IOException {
    return files().makeQualified(path);
  }

  /** Whether the folder has a manifest or any other file. */
  boolean exists() throws IOException {
    return !children().isEmpty();
  }

  private List<Path> children() throws IOException {
    List<Path> children = new ArrayList<>();
    try {
      for (FileStatus file : files().listStatus(path)) {
        children.add(file.getPath());
      }
    } catch (FileNotFoundException e) {
      return List.of();
    }
    return children;
  }

  /**
   * Checks that an overwrite destroys nothing but an export.
   *
   * @throws IllegalStateException if there are other files
   */
  void requireOnlyExport() throws IOException {
    for (Path child : children()) {
      if (!child.getName().startsWith(MANIFEST) && !child.getName().startsWith("." + MANIFEST)) {
        throw new IllegalStateException(
            "%s is no export of format weft, it has the file %s: save to another path"
                .formatted(path, child.getName()));
      }
    }
  }

  /**
   * Reads the manifest.
   *
   * @return empty if there is none
   * @throws IOException if it cannot be read, or is no JSON object
   */
  Optional<ObjectNode> manifest() throws IOException {
    try (InputStream in = files().open(new Path(path, MANIFEST))) {
      JsonNode read = JSON.readTree(in);
      if (read instanceof ObjectNode manifest) {
        return Optional.of(manifest);
      }
      throw new IOException(path + "/" + MANIFEST + " is not a JSON object");
    } catch (FileNotFoundException e) {
      return Optional.empty();
    }
  }

  /** Replaces the manifest. A reader sees the earlier one, none, or the new one. */
  void publish(ObjectNode manifest) throws IOException {
    FileSystem files = files();
    Path draft = new Path(path, "." + MANIFEST + "." + UUID.randomUUID());
    Path target = new Path(path, MANIFEST);
    try {
      try (OutputStream out = files.create(draft, false)) {
        out.write(text(manifest).getBytes(StandardCharsets.UTF_8));
      }
      delete(target);
      if (!files.rename(draft, target)) {
        throw new IOException("another program wrote " + target + " at the same time");
      }
    } catch (IOException | RuntimeException | Error e) {
      delete(draft);
      throw e;
    }
  }

  private static String text(ObjectNode manifest) throws JsonProcessingException {
    return JSON.writerWithDefaultPrettyPrinter().writeValueAsString(manifest);
  }

  /** Deletes the manifest, and the folder if it is then empty. */
  void remove() throws IOException {
    delete(new Path(path, MANIFEST));
    if (children().isEmpty()) {
      delete(path);
    }
  }

  /** Deletes a file or an empty folder, if it exists. */
  private void delete(Path file) throws IOException {
    boolean unused = files().delete(file, false);
  }

  @Override
  public String toString() {
    return path.toString();
  }
}
