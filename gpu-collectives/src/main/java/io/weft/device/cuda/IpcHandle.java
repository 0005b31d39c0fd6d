package io.weft.device.cuda;

import java.nio.ByteBuffer;
import java.util.UUID;

/**
 * Describes device memory for other processes of the host.
 *
 * <pre>
 * long pid | long, long uuid of the GPU | long offset | long bytes | 64 bytes of the driver
 * </pre>
 *
 * @param pid the process that owns the memory
 * @param gpu the GPU of the memory
 * @param offset the offset of the memory from the start of the driver's handle
 * @param bytes 1 or more
 * @param handle the driver's 64 bytes, which must not be changed
 */
@SuppressWarnings("ArrayRecordComponent") // Only the driver reads it.
public record IpcHandle(long pid, UUID gpu, long offset, long bytes, byte[] handle) {
  private static final int HEAD_BYTES = 5 * Long.BYTES;

  /** The length of {@link #encode}. */
  public static final int ENCODED_BYTES = HEAD_BYTES + IpcMemoryHandle.BYTES;

  public IpcHandle {
    if (offset < 0 || bytes < 1 || handle.length != IpcMemoryHandle.BYTES) {
      throw new IllegalArgumentException(
          "a handle of "
              + bytes
              + " bytes at "
              + offset
              + " with "
              + handle.length
              + " bytes of the driver");
    }
  }

  /** Encodes it for a message to another process. */
  public byte[] encode() {
    return ByteBuffer.allocate(ENCODED_BYTES)
        .putLong(pid)
        .putLong(gpu.getMostSignificantBits())
        .putLong(gpu.getLeastSignificantBits())
        .putLong(offset)
        .putLong(bytes)
        .put(handle)
        .array();
  }

  /**
   * Decodes {@link #encode}.
   *
   * @throws IllegalArgumentException for any other message
   */
  public static IpcHandle decode(byte[] message) {
    if (message.length != ENCODED_BYTES) {
      throw new IllegalArgumentException(
          message.length
              + " bytes are not a handle of device memory, which has "
              + HEAD_BYTES
              + " + "
              + IpcMemoryHandle.BYTES);
    }
    ByteBuffer in = ByteBuffer.wrap(message);
    long pid = in.getLong();
    UUID gpu = new UUID(in.getLong(), in.getLong());
    long offset = in.getLong();
    long bytes = in.getLong();
    byte[] handle = new byte[IpcMemoryHandle.BYTES];
    in.get(handle);
    return new IpcHandle(pid, gpu, offset, bytes, handle);
  }

  @Override
  public String toString() {
    return bytes + " bytes of GPU " + gpu + " of process " + pid;
  }
}
