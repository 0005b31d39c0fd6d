package io.weft.tensor.dlpack;

import io.weft.device.Device;
import io.weft.tensor.TensorType;
import java.util.Objects;

/**
 * A tensor to export: elements in C order, without gaps.
 *
 * @param type element type and shape
 * @param address the address of the first element, on the device; any value without elements
 * @param device the device of the memory
 * @param readOnly whether consumers must not write to it; only {@link DlpackForm#VERSIONED}
 *     expresses it
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
