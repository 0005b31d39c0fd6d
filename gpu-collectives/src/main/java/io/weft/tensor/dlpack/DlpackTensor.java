package io.weft.tensor.dlpack;

import io.weft.device.Device;
import io.weft.tensor.TensorType;
import java.util.Objects;

/**
 * A tensor to be exported: elements in C order, without gaps.
 *
 * @param type element type and shape
 * @param address of the first element, on the device; any value when there are none
 * @param device where it lies
 * @param readOnly whether consumers must not write to it; only {@link DlpackForm#VERSIONED} says so
 */
public record DlpackTensor(TensorType type, long address, Device device, boolean readOnly) {
  public DlpackTensor {
    Objects.requireNonNull(type, "type");
    Objects.requireNonNull(device, "device");
    if (address == 0 && type.elements() > 0) {
      throw new IllegalArgumentException("a tensor " + type + " has no address");
    }
  }
}
