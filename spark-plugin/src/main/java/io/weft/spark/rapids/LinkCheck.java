package io.weft.spark.rapids;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.apache.xbean.asm9.Opcodes;
import org.apache.xbean.asm9.tree.AbstractInsnNode;
import org.apache.xbean.asm9.tree.ClassNode;
import org.apache.xbean.asm9.tree.MethodInsnNode;
import org.apache.xbean.asm9.tree.MethodNode;
import org.apache.xbean.asm9.tree.TypeInsnNode;

/**
 * Checks whether Weft's classes are compatible with the spark-rapids and cudf classes of a jar:
 * each method that Weft calls exists, and each abstract method of a trait is implemented. Reads
 * class files only. Used by one thread.
 */
final class LinkCheck {
  private static final String OWN = "io/weft/spark/rapids/";
  private static final List<String> FOREIGN = List.of("com/nvidia/", "ai/rapids/cudf/");

  private final ClassFiles own;
  private final ClassFiles foreign;
  private final Set<String> problems = new LinkedHashSet<>();
  private final Set<String> seen = new LinkedHashSet<>();
  private final Deque<String> todo = new ArrayDeque<>();

  /** A check of Weft's classes against a jar's. */
  LinkCheck(ClassFiles own, ClassFiles foreign) {
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
