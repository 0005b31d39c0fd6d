package io.weft.spark.feed.source;

import com.fasterxml.jackson.core.JacksonException;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The folder of an export in any file system of Hadoop, with the manifest as its only file. The
 * rows themselves are in shared memory. Thread-safe.
 */
final class ExportFolder {
  /** The name of the manifest in the folder. */
  static final String MANIFEST = "manifest.json";

  private static final Logger LOG = LoggerFactory.getLogger(ExportFolder.class);
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

  /** Without Hadoop's checksums, which fail for files that another program has replaced. */
  private FileSystem files() throws IOException {
    FileSystem files = path.getFileSystem(conf);
    return files instanceof ChecksumFileSystem checked ? checked.getRawFileSystem() : files;
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
   * @throws UnreadableManifestException if it is no JSON object
   * @throws IOException if the file system does not answer
   */
  Optional<ObjectNode> manifest() throws IOException {
    try (InputStream in = files().open(new Path(path, MANIFEST))) {
      if (JSON.readTree(in) instanceof ObjectNode manifest) {
        return Optional.of(manifest);
      }
      throw new UnreadableManifestException("%s/%s is no JSON object".formatted(path, MANIFEST));
    } catch (JacksonException e) {
      throw new UnreadableManifestException(
          "%s/%s is no JSON: %s".formatted(path, MANIFEST, e.getOriginalMessage()));
    } catch (FileNotFoundException e) {
      return Optional.empty();
    }
  }

  /** The folder has a manifest that Weft has not written. */
  static final class UnreadableManifestException extends IOException {
    private static final long serialVersionUID = 1L;

    UnreadableManifestException(String message) {
      super(message);
    }
  }

  /**
   * Writes the manifest. A reader sees the earlier one or the new one; if this fails, the earlier
   * one stays.
   *
   * @param replace whether an earlier one is replaced
   * @throws FileAlreadyExistsException if there is one that must not be replaced
   */
  void publish(ObjectNode manifest, boolean replace) throws IOException {
    FileSystem files = files();
    Path draft = new Path(path, "." + MANIFEST + "." + UUID.randomUUID());
    Path target = new Path(path, MANIFEST);
    byte[] text = text(manifest).getBytes(StandardCharsets.UTF_8);
    try {
      write(draft, text, false);
      if (files.getUri().getScheme().equals("file")) {
        moveLocally(local(draft), local(target), replace);
      } else {
        Options.Rename option = replace ? Options.Rename.OVERWRITE : Options.Rename.NONE;
        FileContext.getFileContext(files.getUri(), conf).rename(draft, target, option);
      }
    } catch (UnsupportedFileSystemException e) {
      // It has no atomic rename. Object stores have an atomic write instead.
      LOG.info("{} is written directly: {}", target, e.getMessage());
      delete(draft);
      write(target, text, replace);
    } catch (IOException | RuntimeException | Error e) {
      delete(draft);
      throw e;
    }
  }

  private void write(Path file, byte[] text, boolean replace) throws IOException {
    try (OutputStream out = files().create(file, replace)) {
      out.write(text);
    }
  }

  private java.nio.file.Path local(Path file) throws IOException {
    return java.nio.file.Path.of(files().makeQualified(file).toUri().getPath());
  }

  private static void moveLocally(
      java.nio.file.Path draft, java.nio.file.Path target, boolean replace) throws IOException {
    if (!replace && Files.exists(target, LinkOption.NOFOLLOW_LINKS)) {
      throw new FileAlreadyExistsException(target + " exists");
    }
    Files.move(draft, target, StandardCopyOption.ATOMIC_MOVE);
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

  /** The error of a failed access. */
  IllegalStateException unusable(IOException cause) {
    return new IllegalStateException(
        "the export in %s cannot be read or written: %s".formatted(path, cause), cause);
  }

  @Override
  public String toString() {
    return path.toString();
  }
}
