package io.weft.spark.gpu.jcuda;

import java.lang.reflect.Field;
import jcuda.NativePointerObject;
import jcuda.Pointer;
import jcuda.driver.CUdeviceptr;
import jcuda.driver.CUfunction;
import jcuda.driver.CUstream;

/**
 * Converts between handles of the CUDA driver and JCuda's objects. JCuda's own code sets the handle
 * of an object in a private field, and no public method does. Stateless.
 */
final class JcudaPointers {
  private static final Field HANDLE = field(NativePointerObject.class, "nativePointer");
  private static final Field OFFSET = field(Pointer.class, "byteOffset");

  private JcudaPointers() {}

  private static Field field(Class<?> type, String name) {
    try {
      Field field = type.getDeclaredField(name);
      field.setAccessible(true);
      return field;
    } catch (NoSuchFieldException e) {
      throw new IllegalStateException(
          "this version of JCuda has no field %s of %s; Weft is tested with 12.6.0"
              .formatted(name, type.getName()),
          e);
    }
  }

  static CUdeviceptr pointer(long address) {
    return with(address, new CUdeviceptr());
  }

  static CUstream stream(long handle) {
    return with(handle, new CUstream());
  }

  static CUfunction function(long handle) {
    return with(handle, new CUfunction());
  }

  private static <T extends NativePointerObject> T with(long handle, T object) {
    try {
      HANDLE.setLong(object, handle);
      return object;
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The address that a pointer has for the driver; 0 for null. */
  static long address(CUdeviceptr pointer) {
    try {
      return pointer == null ? 0 : HANDLE.getLong(pointer) + OFFSET.getLong(pointer);
    } catch (IllegalAccessException e) {
      throw new IllegalStateException(e);
    }
  }
}
