package io.weft.tensor.dlpack;

import io.weft.collectives.DataType;
import io.weft.device.Device;
import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;

/** The methods that a Python process with a JVM calls by JNI. */
public final class DlpackProducer {
  private static int released;

  private DlpackProducer() {}

  /**
   * The address of a structure: numbers 0 to 23 as [2, 3, 4], read-only if the form can express it.
   *
   * @param form 0 for plain, 1 for versioned
   * @param dtype 0 for float32, 1 for int64
   */
  public static long make(int form, int dtype) {
    DataType elements = dtype == 0 ? DataType.FLOAT32 : DataType.INT64;
    Tensor tensor = Tensor.allocate(TensorType.of(elements, 2, 3, 4));
    for (int i = 0; i < 24; i++) {
      if (dtype == 0) {
        Memory.putFloat(tensor.address() + 4L * i, i);
      } else {
        Memory.putLong(tensor.address() + 8L * i, i);
      }
    }
    return Dlpack.export(
        DlpackForm.values()[form],
        new DlpackTensor(tensor.type(), tensor.address(), Device.HOST, form == 1),
        () -> {
          tensor.close();
          count();
        });
  }

  private static synchronized void count() {
    released++;
  }

  /** The number of returned structures. */
  public static synchronized int released() {
    return released;
  }
}
