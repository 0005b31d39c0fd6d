package io.weft.tensor.dlpack;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Pointer;
import io.weft.device.library.UnavailableLibraryException;
import io.weft.memory.Memory;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Exports tensors by DLPack, without a copy. Thread-safe. */
public final class Dlpack {
  private static final Logger LOG = LoggerFactory.getLogger(Dlpack.class);
  private static final String JNA = "com.sun.jna.Native";

  /** The action for the return of each structure, by its address. */
  private static final Map<Long, Runnable> EXPORTED = new ConcurrentHashMap<>();

  private Dlpack() {}

  /**
   * The function that consumers call; a separate class, so that JNA is loaded only if it exists.
   */
  private static final class Deleter {
    /** Kept reachable, because native code calls it as long as there are structures. */
    private static final Deletion FUNCTION = self -> delete(Pointer.nativeValue(self));

    private static final long ADDRESS =
        Pointer.nativeValue(CallbackReference.getFunctionPointer(FUNCTION));
  }

  /** The C type {@code void (*deleter)(struct DLManagedTensor *self)}. */
  @FunctionalInterface
  interface Deletion extends Callback {
    void invoke(Pointer self);
  }

  /**
   * Exports a tensor as a structure. The consumer returns it once by its deleter, or its producer
   * by {@link #delete}.
   *
   * @param released runs at the return, on the returning thread, which may be one of the consumer.
   *     It should be short. Until then the memory of the elements must stay
   * @return the address of the structure
   * @throws IllegalArgumentException when the form cannot mark the tensor as read-only
   * @throws UnavailableLibraryException when JNA is missing
   */
  public static long export(DlpackForm form, DlpackTensor tensor, Runnable released) {
    Objects.requireNonNull(released, "released");
    if (form == DlpackForm.PLAIN && tensor.readOnly()) {
      throw new IllegalArgumentException(
          "the tensor is read-only, which a DLManagedTensor cannot express: export it VERSIONED, or"
              + " a copy of it");
    }
    long structure = DlpackStructure.write(form, tensor, deleter());
    EXPORTED.put(structure, released);
    return structure;
  }

  private static long deleter() {
    try {
      Class<?> unused = Class.forName(JNA, false, Dlpack.class.getClassLoader());
      return Deleter.ADDRESS;
    } catch (ClassNotFoundException | LinkageError e) {
      throw new UnavailableLibraryException(
          "the export by DLPack needs net.java.dev.jna:jna on the class path: the"
              + " consumers return tensors by a native function",
          e);
    }
  }

  /** Deletes a structure that no consumer has taken; does nothing if it was already returned. */
  public static void delete(long structure) {
    Runnable released = EXPORTED.remove(structure);
    if (released == null) {
      return;
    }
    Memory.free(structure);
    try {
      released.run();
    } catch (RuntimeException | Error e) {
      // The caller may be native code, which cannot catch an exception.
      LOG.error("the action after the end of a tensor's export failed", e);
    }
  }

  /** The number of structures that are not returned yet, for tests and the log. */
  public static int exported() {
    return EXPORTED.size();
  }
}
