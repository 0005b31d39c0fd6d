package io.weft.spark.rapids;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import org.apache.xbean.asm9.ClassReader;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.tree.AbstractInsnNode;
import org.apache.xbean.asm9.tree.ClassNode;
import org.apache.xbean.asm9.tree.MethodInsnNode;
import org.apache.xbean.asm9.tree.MethodNode;
import org.apache.xbean.asm9.tree.TypeInsnNode;

/**
 * The spark-rapids jar that a class loader sees: its version, and whether Weft's transport is
 * compatible with its classes. Loads none of its classes. The jar has one folder of classes for
 * each Spark version.
 */
final class RapidsJar {
  private static final String VERSION_FILE = "rapids4spark-version-info.properties";
  private static final String PLUGIN_FILE = "com/nvidia/spark/SQLPlugin.class";
  static final String TRAIT = "com/nvidia/spark/rapids/shuffle/RapidsShuffleTransport";

  /** The version whose traits the stubs declare. */
  private static final String KNOWN_VERSION = "26.08.1";

  private static final int MAX_PROBLEMS = 3;

  private final ClassLoader loader;
  private final String shim;

  /**
   * Creates a view of a loader; reads nothing yet.
   *
   * @param shim the folder of the Spark version, for example spark413
   */
  RapidsJar(ClassLoader loader, String shim) {
    this.loader = loader;
    this.shim = shim;
  }

  /** Why Weft cannot be the transport; empty if it can. */
  Optional<String> obstacle() {
    if (loader.getResource(PLUGIN_FILE) == null) {
      return Optional.of(
          "it is not on the driver's class path. Add com.nvidia:rapids-4-spark_2.13:"
              + KNOWN_VERSION
              + " by spark.jars.");
    }
    ClassFiles foreign = ClassFiles.of(loader, List.of("", shim + "/", "spark-shared/"));
    if (foreign.read(TRAIT).isEmpty()) {
      return Optional.of(
          "%s has no classes for %s. Is that the shuffle manager of this version of Spark?"
              .formatted(this, shim));
    }
    List<String> problems =
        new CompatibilityCheck(
                ClassFiles.of(RapidsJar.class.getClassLoader(), List.of("")), foreign)
            .problems(RapidsRole.TRANSPORT);
    return problems.isEmpty()
        ? Optional.empty()
        : Optional.of(
            "Weft is built for spark-rapids %s, and %s differs from it: %s."
                .formatted(KNOWN_VERSION, this, shortened(problems)));
  }

  private static String shortened(List<String> problems) {
    String first = String.join("; ", problems.subList(0, Math.min(MAX_PROBLEMS, problems.size())));
    int more = problems.size() - MAX_PROBLEMS;
    return more > 0 ? first + "; and " + more + " more" : first;
  }

  /** For example "spark-rapids 26.08.1". */
  @Override
  public String toString() {
    Properties properties = new Properties();
    try (InputStream in = loader.getResourceAsStream(VERSION_FILE)) {
      if (in != null) {
        properties.load(in);
      }
    } catch (IOException e) {
      return "spark-rapids of a version that cannot be read (" + e.getMessage() + ")";
    }
    return "spark-rapids " + properties.getProperty("version", "of an unknown version");
  }

  /**
   * Checks whether Weft's classes are compatible with the spark-rapids and cudf classes of a jar:
   * each method that Weft calls exists, and each abstract method of a trait is implemented. Reads
   * class files only. Used by one thread.
   */
  static final class CompatibilityCheck {
    private static final String OWN = "io/weft/spark/rapids/";
    private static final List<String> FOREIGN = List.of("com/nvidia/", "ai/rapids/cudf/");

    private final ClassFiles own;
    private final ClassFiles foreign;
    private final Set<String> problems = new LinkedHashSet<>();
    private final Set<String> seen = new LinkedHashSet<>();
    private final Deque<String> todo = new ArrayDeque<>();

    /** A check of Weft's classes against a jar's. */
    CompatibilityCheck(ClassFiles own, ClassFiles foreign) {
      this.own = own;
      this.foreign = foreign;
    }

    /**
     * The incompatibilities, one line each; empty if there are none.
     *
     * @param root the first class; the classes of Weft's package that it uses follow
     */
    List<String> problems(String root) {
      visit(root.replace('.', '/'));
      while (!todo.isEmpty()) {
        check(own.read(todo.remove()).orElseThrow());
      }
      return new ArrayList<>(problems);
    }

    private void visit(String name) {
      if (name.startsWith(OWN) && seen.add(name)) {
        todo.add(name);
      }
    }

    private void check(ClassNode node) {
      visit(node.superName);
      node.interfaces.forEach(this::visit);
      node.innerClasses.forEach(inner -> visit(inner.name));
      for (MethodNode method : node.methods) {
        for (AbstractInsnNode instruction : method.instructions) {
          check(instruction);
        }
      }
      if ((node.access & Opcodes.ACC_ABSTRACT) == 0) {
        requireImplemented(node);
      }
    }

    private void check(AbstractInsnNode instruction) {
      if (instruction instanceof MethodInsnNode call) {
        visit(call.owner);
        if (isForeign(call.owner)) {
          requireMethod(call);
        }
      } else if (instruction instanceof TypeInsnNode type) {
        visit(type.desc);
        if (isForeign(type.desc) && foreign.read(type.desc).isEmpty()) {
          problems.add("no class " + type.desc);
        }
      }
    }

    private static boolean isForeign(String name) {
      return FOREIGN.stream().anyMatch(name::startsWith);
    }

    private void requireMethod(MethodInsnNode call) {
      Optional<ClassNode> owner = foreign.read(call.owner);
      if (owner.isEmpty()) {
        problems.add("no class " + call.owner);
        return;
      }
      boolean isStatic = call.getOpcode() == Opcodes.INVOKESTATIC;
      boolean isInterface = (owner.get().access & Opcodes.ACC_INTERFACE) != 0;
      Optional<MethodNode> method = find(call.owner, call.name, call.desc);
      if (method.isEmpty()
          || ((method.get().access & Opcodes.ACC_STATIC) != 0) != isStatic
          || isInterface != call.itf) {
        problems.add("no method %s.%s%s".formatted(call.owner, call.name, call.desc));
      }
    }

    /** Finds a method in a class or its parents; constructors in the class only. */
    private Optional<MethodNode> find(String owner, String name, String descriptor) {
      Optional<ClassNode> node = foreign.read(owner);
      if (node.isEmpty()) {
        return Optional.empty();
      }
      for (MethodNode method : node.get().methods) {
        if (method.name.equals(name) && method.desc.equals(descriptor)) {
          return Optional.of(method);
        }
      }
      if (name.equals("<init>")) {
        return Optional.empty();
      }
      for (String parent : parents(node.get())) {
        Optional<MethodNode> inherited = find(parent, name, descriptor);
        if (inherited.isPresent()) {
          return inherited;
        }
      }
      return Optional.empty();
    }

    private static List<String> parents(ClassNode node) {
      List<String> parents = new ArrayList<>(node.interfaces);
      if (node.superName != null) {
        parents.add(node.superName);
      }
      return parents;
    }

    private void requireImplemented(ClassNode node) {
      Set<String> demanded = new LinkedHashSet<>();
      Set<String> given = new LinkedHashSet<>();
      collect(node, demanded, given);
      demanded.removeAll(given);
      demanded.forEach(method -> problems.add(node.name + " lacks " + method));
    }

    private void collect(ClassNode node, Set<String> demanded, Set<String> given) {
      for (MethodNode method : node.methods) {
        boolean isAbstract = (method.access & Opcodes.ACC_ABSTRACT) != 0;
        (isAbstract ? demanded : given).add(method.name + method.desc);
      }
      for (String parent : parents(node)) {
        ClassFiles files = parent.startsWith(OWN) ? own : foreign;
        if (parent.startsWith(OWN) || isForeign(parent)) {
          files
              .read(parent)
              .ifPresentOrElse(
                  each -> collect(each, demanded, given), () -> problems.add("no class " + parent));
        }
      }
    }
  }

  /** Reads class files by class name, without loading the classes. Used by one thread. */
  static final class ClassFiles {
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
}
