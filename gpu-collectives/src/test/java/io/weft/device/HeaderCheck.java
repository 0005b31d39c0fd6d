package io.weft.device;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Structure;
import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Compares Java's view of a C library with the library's header. It writes a C++ source with one
 * static_assert for each function, argument and constant. For each struct, the source fills the
 * real one by field names and compares its bytes with Java's.
 */
public final class HeaderCheck {
  private static final String COMPILER = System.getenv().getOrDefault("CXX", "g++");
  private static final Duration TIMEOUT = Duration.ofMinutes(3);

  private static final String START =
      """
      #include <cstddef>
      #include <cstdio>
      #include <cstring>
      #include <tuple>
      #include <type_traits>

      template <typename T> struct signature;
      template <typename R, typename... A> struct signature<R (*)(A...)> {
        using result = R;
        using arguments = std::tuple<A...>;
        static constexpr size_t count = sizeof...(A);
      };
      template <typename F> using result_of = typename signature<F>::result;
      template <size_t I, typename F>
      using argument_of = std::tuple_element_t<I, typename signature<F>::arguments>;

      template <typename T> constexpr bool is_value(size_t bytes) {
        return sizeof(T) == bytes && (std::is_scalar_v<T>) && !std::is_floating_point_v<T>;
      }
      template <typename T> constexpr bool is_struct(size_t bytes) {
        return std::is_class_v<T> && sizeof(T) == bytes;
      }
      template <typename T> constexpr bool is_array(size_t bytes) {
        if constexpr (std::is_pointer_v<T>) {
          using E = std::remove_pointer_t<T>;
          if constexpr (std::is_void_v<E>) {
            return true;
          } else {
            return bytes == 1 || sizeof(E) == bytes;
          }
        }
        return false;
      }
      """;

  private final StringBuilder source = new StringBuilder();
  private final StringBuilder calls = new StringBuilder();
  private final Set<String> checked = new HashSet<>();
  private final Set<Class<?>> classes = new HashSet<>();
  private int structs;

  /** Starts with a header. */
  public HeaderCheck(String header) {
    source.append("#include <").append(header).append(">\n").append(START);
  }

  /** Why there is no compiler; empty if there is one. */
  public static String whyNoCompiler() {
    try {
      return ChildProcess.run(List.of(COMPILER, "--version"), TIMEOUT).isWell()
          ? ""
          : COMPILER + " does not work";
    } catch (IOException e) {
      return COMPILER + " cannot run: " + e.getMessage();
    }
  }

  /** The folder of CUDA's headers: of weft.cuda.include, CUDA_HOME, or the usual places. */
  public static Optional<Path> cudaFolder() {
    List<String> folders = new ArrayList<>();
    folders.add(System.getProperty("weft.cuda.include", ""));
    folders.add(System.getenv().getOrDefault("CUDA_HOME", "") + "/include");
    folders.add("/usr/local/cuda/include");
    folders.add("/usr/include");
    return first(folders, "cuda.h");
  }

  /** The folder of NCCL's header: of weft.nccl.include, NCCL_HOME, or the usual places. */
  public static Optional<Path> ncclFolder() {
    List<String> folders = new ArrayList<>();
    folders.add(System.getProperty("weft.nccl.include", ""));
    folders.add(System.getenv().getOrDefault("NCCL_HOME", "") + "/include");
    folders.add("/usr/include");
    folders.add("/usr/local/include");
    folders.add("/usr/local/cuda/include");
    return first(folders, "nccl.h");
  }

  private static Optional<Path> first(List<String> folders, String header) {
    return folders.stream()
        .map(Path::of)
        .filter(Path::isAbsolute)
        .filter(folder -> Files.isReadable(folder.resolve(header)))
        .findFirst();
  }

  /** Adds all native methods of a class, if the header fulfils the condition. */
  public HeaderCheck functions(Class<?> binding, String condition) {
    source.append("#if ").append(condition).append('\n');
    for (Method method : binding.getDeclaredMethods()) {
      if (Modifier.isNative(method.getModifiers())) {
        function(method);
      }
    }
    source.append("#endif\n");
    return this;
  }

  private void function(Method method) {
    String name = method.getName();
    String type = "decltype(&" + name + ")";
    Class<?>[] arguments = method.getParameterTypes();
    require(
        "signature<" + type + ">::count == " + arguments.length, name + ": number of arguments");
    require(matches("result_of<" + type + ">", method.getReturnType()), name + ": result");
    for (int i = 0; i < arguments.length; i++) {
      require(
          matches("argument_of<" + i + ", " + type + ">", arguments[i]),
          name + ": argument " + i + " is not a " + arguments[i].getSimpleName());
    }
  }

  private static String matches(String type, Class<?> java) {
    if (java.isArray()) {
      return "is_array<" + type + ">(" + bytes(java.getComponentType()) + ")";
    }
    if (Structure.class.isAssignableFrom(java)) {
      return "is_struct<" + type + ">(" + structBytes(java) + ")";
    }
    return "is_value<" + type + ">(" + bytes(java) + ")";
  }

  private static int structBytes(Class<?> java) {
    try {
      return ((Structure) java.getDeclaredConstructor().newInstance()).size();
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  private static int bytes(Class<?> java) {
    if (java == long.class) {
      return Long.BYTES;
    }
    if (java == int.class) {
      return Integer.BYTES;
    }
    if (java == byte.class) {
      return 1;
    }
    throw new AssertionError(java + " is no type of the bindings");
  }

  private void require(String condition, String message) {
    source
        .append("static_assert(")
        .append(condition)
        .append(", \"")
        .append(message)
        .append("\");\n");
  }

  /**
   * Adds constants.
   *
   * @param at the package of the classes
   * @param lines one a line: Class.FIELD and a C expression, or Class.FIELD alone for a constant
   *     that is not the library's
   */
  public HeaderCheck constants(Package at, String lines) {
    for (String line : lines.strip().split("\n")) {
      String[] words = line.strip().split("\\s+", 2);
      int dot = words[0].lastIndexOf('.');
      try {
        Class<?> owner = Class.forName(at.getName() + "." + words[0].substring(0, dot));
        Field field = owner.getDeclaredField(words[0].substring(dot + 1));
        field.setAccessible(true);
        classes.add(owner);
        checked.add(owner.getName() + "." + field.getName());
        if (words.length > 1) {
          constant(words[0], ((Number) field.get(null)).longValue(), words[1]);
        }
      } catch (ReflectiveOperationException e) {
        throw new AssertionError(words[0] + " is no constant", e);
      }
    }
    return this;
  }

  /** Adds one value. */
  public HeaderCheck constant(String what, long java, String inC) {
    require("(int)(" + inC + ") == (int)" + java + "LL", what + " is not " + inC);
    return this;
  }

  /**
   * Adds a struct that Java writes byte by byte.
   *
   * @param type its name in C; it may be longer than Java's bytes
   * @param java the bytes
   * @param fields statements in C that give the variable "it" the same values
   */
  public HeaderCheck struct(String type, byte[] java, String fields) {
    String name = "check" + structs++;
    source.append("static int ").append(name).append("() {\n").append(type).append(" it;\n");
    source.append("std::memset(&it, 0, sizeof it);\n").append(fields);
    source.append("\nconst unsigned char java[] = {");
    for (byte each : java) {
      source.append(each & 0xff).append(',');
    }
    source.append("};\nint wrong = 0;\n");
    require("sizeof it >= sizeof java", type + ": size");
    source.append("for (size_t i = 0; i < sizeof java; i++) {\n");
    source.append("if (((unsigned char *)&it)[i] != java[i]) {\n");
    source.append("wrong++; std::printf(\"").append(type).append(": byte %zu\\n\", i);\n}\n}\n");
    source.append("return wrong;\n}\n");
    calls.append(name).append("() + ");
    return this;
  }

  /** Asserts that each constant of the classes is in the list, so that no new one is forgotten. */
  private void requireAll() throws ReflectiveOperationException {
    for (Class<?> owner : classes) {
      for (Field field : owner.getDeclaredFields()) {
        boolean isNumber = field.getType() == int.class || field.getType() == long.class;
        int kind = field.getModifiers();
        if (isNumber && Modifier.isStatic(kind) && Modifier.isFinal(kind)) {
          assertThat(checked).contains(owner.getName() + "." + field.getName());
        }
      }
    }
  }

  /** Compiles and runs the comparison; the message of a failure names each difference. */
  public void run(Path folder, List<Path> includes) throws Exception {
    requireAll();
    source.append("int main() { return ").append(calls).append("0 ? 1 : 0; }\n");
    Path file = Files.writeString(folder.resolve("headers.cc"), source);
    Path program = folder.resolve("headers");
    List<String> command = new ArrayList<>(List.of(COMPILER, "-std=c++17", "-w"));
    includes.forEach(include -> command.add("-I" + include));
    command.addAll(List.of("-o", program.toString(), file.toString()));
    ChildProcess.Outcome compiled = ChildProcess.run(command, TIMEOUT);
    assertThat(compiled.isWell()).as(() -> "" + compiled).isTrue();
    ChildProcess.Outcome ran = ChildProcess.run(List.of(program.toString()), TIMEOUT);
    assertThat(ran.isWell()).as(() -> "" + ran).isTrue();
  }
}
