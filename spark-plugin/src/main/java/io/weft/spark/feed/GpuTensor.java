package io.weft.spark.feed;

import io.weft.collectives.buffer.TypedBuffer;
import io.weft.device.Device;
import io.weft.tensor.TensorType;

/**
 * A column of a batch in memory of a GPU: C order, no gaps. A view, valid as long as its batch.
 *
 * @param type element type and shape, rows first
 * @param buffer where the elements lie, for the device; the host cannot read them there
 * @param device the GPU, by its number in this process
 */
public record GpuTensor(TensorType type, TypedBuffer buffer, Device device) {}
