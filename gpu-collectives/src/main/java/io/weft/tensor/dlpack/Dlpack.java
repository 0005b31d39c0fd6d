package io.weft.tensor.dlpack;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Pointer;
import io.weft.collectives.DataType;
import io.weft.device.Device;
import io.weft.device.UnavailableLibraryException;
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

  /**
   * DLPack's structures in native memory, followed by the shape and the strides. All numbers are in
   * the byte order of the machine, addresses have 8 bytes.
   *
   * <pre>
   *   DLManagedTensor:           DLTensor | context | deleter
   *   DLManagedTensorVersioned:  int major, minor | context | deleter | flags | DLTensor
   *   DLTensor:                  address | int device type, id | int dimensions | byte code, bits,
   *                              short lanes | address of shape | address of strides | byte offset
   * </pre>
   */
  static final class DlpackStructure {
    private static final long TENSOR_BYTES = 48;
    private static final long DEVICE_TYPE = 8;
    private static final long DEVICE_ID = 12;
    private static final long DIMENSIONS = 16;
    private static final long ELEMENT_TYPE = 20;
    private static final long SHAPE = 24;
    private static final long STRIDES = 32;
    private static final long BYTE_OFFSET = 40;

    private static final long PLAIN_CONTEXT = TENSOR_BYTES;
    private static final long PLAIN_DELETER = PLAIN_CONTEXT + Long.BYTES;
    private static final long PLAIN_BYTES = PLAIN_DELETER + Long.BYTES;

    private static final int MAJOR = 1;
    private static final int MINOR = 0;
    private static final long VERSIONED_CONTEXT = 8;
    private static final long VERSIONED_DELETER = 16;
    private static final long FLAGS = 24;
    private static final long VERSIONED_TENSOR = 32;
    private static final long VERSIONED_BYTES = VERSIONED_TENSOR + TENSOR_BYTES;
    private static final long READ_ONLY = 1;

    private static final int CPU = 1;
    private static final int CUDA = 2;
    private static final int INTEGER = 0;
    private static final int FLOAT = 2;
    private static final int BFLOAT = 4;

    private DlpackStructure() {}

    /** Writes a structure; returns its address, for {@link Memory#free}. */
    static long write(DlpackForm form, DlpackTensor tensor, long deleter) {
      long[] shape = tensor.type().shape();
      long head = form == DlpackForm.PLAIN ? PLAIN_BYTES : VERSIONED_BYTES;
      long start = Memory.allocate(head + 2L * shape.length * Long.BYTES);
      if (form == DlpackForm.PLAIN) {
        Memory.putLong(start + PLAIN_CONTEXT, 0);
        Memory.putLong(start + PLAIN_DELETER, deleter);
        writeTensor(start, tensor, start + head);
      } else {
        Memory.putInt(start, MAJOR);
        Memory.putInt(start + Integer.BYTES, MINOR);
        Memory.putLong(start + VERSIONED_CONTEXT, 0);
        Memory.putLong(start + VERSIONED_DELETER, deleter);
        Memory.putLong(start + FLAGS, tensor.readOnly() ? READ_ONLY : 0);
        writeTensor(start + VERSIONED_TENSOR, tensor, start + head);
      }
      return start;
    }

    private static void writeTensor(long at, DlpackTensor tensor, long sizes) {
      long[] shape = tensor.type().shape();
      long strides = sizes + (long) shape.length * Long.BYTES;
      Memory.putLong(at, tensor.type().elements() == 0 ? 0 : tensor.address());
      Memory.putInt(at + DEVICE_TYPE, tensor.device().kind() == Device.Kind.HOST ? CPU : CUDA);
      Memory.putInt(at + DEVICE_ID, tensor.device().ordinal());
      Memory.putInt(at + DIMENSIONS, shape.length);
      DataType dtype = tensor.type().dtype();
      Memory.putByte(at + ELEMENT_TYPE, (byte) code(dtype));
      Memory.putByte(at + ELEMENT_TYPE + 1, (byte) (dtype.bytes() * Byte.SIZE));
      Memory.putShort(at + ELEMENT_TYPE + 2, (short) 1);
      Memory.putLong(at + SHAPE, sizes);
      Memory.putLong(at + STRIDES, strides);
      Memory.putLong(at + BYTE_OFFSET, 0);
      long stride = 1;
      for (int i = shape.length - 1; i >= 0; i--) {
        Memory.putLong(sizes + (long) i * Long.BYTES, shape[i]);
        Memory.putLong(strides + (long) i * Long.BYTES, stride);
        stride *= Math.max(1, shape[i]);
      }
    }

    private static int code(DataType dtype) {
      return switch (dtype) {
        case INT8, INT16, INT32, INT64 -> INTEGER;
        case BFLOAT16 -> BFLOAT;
        case FLOAT16, FLOAT32, FLOAT64 -> FLOAT;
      };
    }
  }
}
