package io.weft.tensor.codec;

import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.function.Function;

/**
 * Reads encoded tensors. Bytes that are cut off, or of which a header or a length makes no sense,
 * are an error before any memory is taken; a changed bit within elements cannot be seen here, only
 * by the checksums of whoever carried them. Stateless.
 */
public final class TensorDecoder {
  private TensorDecoder() {}

  /**
   * Decodes what a direct buffer holds between its position and its limit.
   *
   * @throws CorruptTensorException when that is not exactly one encoded tensor
   */
  public static Tensor decode(ByteBuffer direct) {
    try {
      long address = Memory.addressOf(direct) + direct.position();
      return decode(address, direct.remaining(), Tensor::allocate);
    } finally {
      Reference.reachabilityFence(direct);
    }
  }

  /**
   * Decodes a tensor.
   *
   * @param address of its header
   * @param bytes of header and body
   * @param memory makes the tensor to decode into
   * @throws CorruptTensorException when the bytes are not exactly one encoded tensor
   */
  public static Tensor decode(long address, long bytes, Function<TensorType, Tensor> memory) {
    TensorHeader header = TensorHeader.read(address, bytes);
    TensorCodec codec = header.kind().codec();
    long body = address + header.bytes();
    long bodyBytes = bytes - header.bytes();
    codec.checkBody(header, body, bodyBytes);
    Tensor tensor = memory.apply(header.type());
    try {
      codec.decode(header, body, bodyBytes, tensor.address());
      return tensor;
    } catch (CorruptTensorException e) {
      tensor.close();
      throw e;
    }
  }
}
