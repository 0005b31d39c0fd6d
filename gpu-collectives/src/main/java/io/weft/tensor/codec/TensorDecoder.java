package io.weft.tensor.codec;

import io.weft.memory.Memory;
import io.weft.tensor.Tensor;
import io.weft.tensor.TensorType;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.function.Function;

/**
 * Decodes tensors. Truncated bytes, or an invalid header or length, are an error before any memory
 * is allocated. A changed bit within elements is not detected here; that needs the checksums of the
 * transport. Stateless.
 */
public final class TensorDecoder {
  private TensorDecoder() {}

  /**
   * Decodes the bytes of a direct buffer between its position and its limit.
   *
   * @throws CorruptTensorException when they are not exactly one encoded tensor
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
   * @param address the address of its header
   * @param bytes the length of header and body
   * @param memory creates the tensor to decode into
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
