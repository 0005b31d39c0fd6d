package io.weft.spark.feed;

import io.weft.collectives.TypedBuffer;
import io.weft.device.Device;
import io.weft.tensor.TensorType;

/**
 * A column of a batch in GPU memory: C order, no gaps. A view that is valid as long as its batch.
 *
 * @param type element type and shape, rows first
 * @param buffer of the elements in device memory; the host cannot read it
 * @param device the GPU, by its number in this process
 */
public record GpuTensor(TensorType type, TypedBuffer buffer, Device device) {}
