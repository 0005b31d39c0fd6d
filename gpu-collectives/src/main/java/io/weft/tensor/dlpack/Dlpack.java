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

/** Gives tensors away by DLPack, without a copy. Thread-safe. */
public final class Dlpack {
  private static final Logger LOG = LoggerFactory.getLogger(Dlpack.class);
  private static final String JNA = "com.sun.jna.Native";

  /** What to run when a structure is given back, by its address. */
  private static final Map<Long, Runnable> EXPORTED = new ConcurrentHashMap<>();

  private Dlpack() {}

  /** The function that consumers call; apart, so that JNA is loaded only when it is there. */
  private static final class Deleter {
    /** Kept reachable: native code calls it as long as there are structures. */
    private static final Deletion FUNCTION = self -> delete(Pointer.nativeValue(self));

    private static final long ADDRESS =
        Pointer.nativeValue(CallbackReference.getFunctionPointer(FUNCTION));
  }

  /** {@code void (*deleter)(struct DLManagedTensor *self)}. */
  @FunctionalInterface
  interface Deletion extends Callback {
    void invoke(Pointer self);
  }

  /**
   * Exports a tensor: a structure that the consumer gives back by calling its deleter, or its
   * producer by {@link #delete}, once.
   *
   * @param released run then, on the thread of whoever gives it back, which may be one of the
   *     consumer's; it should be short. Until then the elements have to stay where they are
   * @return the address of the structure
   * @throws IllegalArgumentException when the form cannot say that the tensor is read-only
   * @throws UnavailableLibraryException when JNA is not there
   */
  public static long export(DlpackForm form, DlpackTensor tensor, Runnable released) {
    Objects.requireNonNull(released, "released");
    if (form == DlpackForm.PLAIN && tensor.readOnly()) {
      throw new IllegalArgumentException(
          "the tensor is read-only, and a DLManagedTensor cannot say so: export it as VERSIONED, or"
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
          "tensors are exported by DLPack only with net.java.dev.jna:jna on the class path: their"
              + " consumers give them back by a native function",
          e);
    }
  }

  /** Gives back a structure that no consumer has taken; does nothing when it was given back. */
  public static void delete(long structure) {
    Runnable released = EXPORTED.remove(structure);
    if (released == null) {
      return;
    }
    Memory.free(structure);
    try {
      released.run();
    } catch (RuntimeException | Error e) {
      // The caller may be native code, which cannot take it.
      LOG.error("what was to follow the end of a tensor's export failed", e);
    }
  }

  /** Structures that nobody has given back, for tests and the log. */
  public static int exported() {
    return EXPORTED.size();
  }
}
