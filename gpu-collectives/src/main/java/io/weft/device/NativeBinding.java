package io.weft.device;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Binds the native methods of a class to the functions of the same name in a library. It checks
 * every symbol first, so that an old library causes an error message and not a crash. Stateless.
 */
public final class NativeBinding {
  private static final String JNA = "com.sun.jna.Native";

  private NativeBinding() {}

  /** A separate class, so that JNA is loaded only after it was found. */
  private static final class WithJna {
    static void bind(Path library, Class<?> functions) {
      NativeLibrary loaded = NativeLibrary.getInstance(library.toString());
      List<String> missing = missing(loaded, functions);
      if (!missing.isEmpty()) {
        throw new UnavailableLibraryException(
            library + " lacks " + String.join(", ", missing) + ": it is older than what Weft uses");
      }
      Native.register(functions, loaded);
    }

    private static List<String> missing(NativeLibrary loaded, Class<?> functions) {
      List<String> missing = new ArrayList<>();
      for (Method method : functions.getDeclaredMethods()) {
        if (Modifier.isNative(method.getModifiers()) && !has(loaded, method.getName())) {
          missing.add(method.getName());
        }
      }
      missing.sort(null);
      return missing;
    }

    private static boolean has(NativeLibrary loaded, String function) {
      try {
        return loaded.getFunction(function) != null;
      } catch (UnsatisfiedLinkError e) {
        return false;
      }
    }
  }

  /**
   * Loads the library permanently and binds all native methods of the class.
   *
   * @throws UnavailableLibraryException when JNA is missing, or the library cannot be loaded or
   *     lacks a function
   */
  public static void bind(Path library, Class<?> functions) {
    requireJna(library);
    try {
      WithJna.bind(library, functions);
    } catch (LinkageError e) {
      throw new UnavailableLibraryException(library + " cannot be loaded: " + e.getMessage(), e);
    }
  }

  private static void requireJna(Path library) {
    try {
      Class.forName(JNA, false, NativeBinding.class.getClassLoader());
    } catch (ClassNotFoundException e) {
      throw new UnavailableLibraryException(
          library + " cannot be used: net.java.dev.jna:jna is not on the class path", e);
    }
  }
}
