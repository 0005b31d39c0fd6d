package io.weft.spark.rapids;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.tree.ClassNode;

/** Reads class files by class name, without loading the classes. Used by one thread. */
final class ClassFiles {
  private final ClassLoader loader;
  private final List<String> folders;
  private final Map<String, Optional<ClassNode>> read = new HashMap<>();

  private ClassFiles(ClassLoader loader, List<String> folders) {
    this.loader = loader;
    this.folders = folders;
  }

  /** The class files that a loader finds in folders. The first folder with a class counts. */
  static ClassFiles of(ClassLoader loader, List<String> folders) {
    return new ClassFiles(loader, folders);
  }

  /**
   * A class.
   *
   * @param name with slashes
   * @return empty if there is none
   */
  Optional<ClassNode> read(String name) {
    return read.computeIfAbsent(name, this::load);
  }

  private Optional<ClassNode> load(String name) {
    for (String folder : folders) {
      try (InputStream in = loader.getResourceAsStream(folder + name + ".class")) {
        if (in != null) {
          ClassNode node = new ClassNode(Opcodes.ASM9);
          new ClassReader(in).accept(node, ClassReader.SKIP_DEBUG | ClassReader.SKIP_FRAMES);
          return Optional.of(node);
        }
      } catch (IOException e) {
        throw new UncheckedIOException(name + " cannot be read", e);
      }
    }
    return Optional.empty();
  }
}
