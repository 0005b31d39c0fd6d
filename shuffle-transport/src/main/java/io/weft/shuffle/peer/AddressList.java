package io.weft.shuffle.peer;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Addresses of many executors as bytes. Numbers are unsigned with 7 bits per byte, the lowest
 * first. A set highest bit means that more bytes follow.
 *
 * <pre>
 * 1 byte    version 1
 * number    addresses
 * each address:
 *   1 byte  bits 0 to 6: text i differs from that of the address before; bit 7: so does the GPU
 *   number  port
 *   each text that differs (executor id, incarnation, host, folder, token, boot id, version):
 *     number, number, bytes     leading bytes shared with the text before, other bytes, UTF-8
 *   a GPU that differs:
 *     number                    ordinal
 *     number, bytes             UUID, name, NCCL version and obstacle
 * </pre>
 *
 * <p>Executors of an application differ in few bytes, about 25 for each. Stateless.
 */
public final class AddressList {
  private static final int LAYOUT = 1;
  private static final int TEXTS = 7;
  private static final int GPU_BIT = 1 << TEXTS;

  private static final GpuEnd NO_GPU = GpuEnd.without("none");

  private AddressList() {}

  /** Encodes addresses. */
  public static byte[] encode(List<PeerAddress> addresses) {
    Encoder encoder = new Encoder();
    encoder.out.write(LAYOUT);
    encoder.number(addresses.size());
    addresses.forEach(encoder::address);
    return encoder.out.toByteArray();
  }

  /**
   * Decodes addresses.
   *
   * @throws IOException if {@link #encode} did not write these bytes
   */
  public static List<PeerAddress> decode(byte[] bytes) throws IOException {
    Decoder decoder = new Decoder(ByteBuffer.wrap(bytes));
    int layout = decoder.octet();
    if (layout != LAYOUT) {
      throw new IOException("addresses of executors have layout " + layout + ", not " + LAYOUT);
    }
    int count = decoder.number(bytes.length);
    List<PeerAddress> addresses = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      addresses.add(decoder.address());
    }
    if (decoder.in.hasRemaining()) {
      throw new IOException(decoder.in.remaining() + " bytes follow the last address");
    }
    return addresses;
  }

  /** Writes addresses. For one thread. */
  private static final class Encoder {
    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final String[] before = new String[TEXTS];
    private final byte[][] beforeBytes = new byte[TEXTS][0];
    private GpuEnd gpuBefore;

    Encoder() {
      Arrays.fill(before, "");
    }

    void address(PeerAddress address) {
      String[] texts = {
        address.executorId(),
        address.incarnation(),
        address.host(),
        address.folder(),
        address.token(),
        address.bootId(),
        address.version()
      };
      int differs = address.gpu().equals(gpuBefore) ? 0 : GPU_BIT;
      for (int i = 0; i < TEXTS; i++) {
        differs |= texts[i].equals(before[i]) ? 0 : 1 << i;
      }
      out.write(differs);
      number(address.port());
      for (int i = 0; i < TEXTS; i++) {
        if ((differs & (1 << i)) != 0) {
          text(i, texts[i]);
        }
      }
      if ((differs & GPU_BIT) != 0) {
        gpu(address.gpu());
      }
    }

    private void text(int i, String text) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      int mismatch = Arrays.mismatch(beforeBytes[i], bytes);
      int shared = mismatch < 0 ? bytes.length : mismatch;
      number(shared);
      number(bytes.length - shared);
      out.write(bytes, shared, bytes.length - shared);
      before[i] = text;
      beforeBytes[i] = bytes;
    }

    private void gpu(GpuEnd gpu) {
      number(gpu.ordinal());
      for (String text : List.of(gpu.uuid(), gpu.name(), gpu.nccl(), gpu.obstacle())) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        number(bytes.length);
        out.write(bytes, 0, bytes.length);
      }
      number(gpu.sharesGpu() ? 1 : 0);
      gpuBefore = gpu;
    }

    void number(int value) {
      int left = value;
      while (left > 0x7f) {
        out.write((left & 0x7f) | 0x80);
        left >>>= 7;
      }
      out.write(left);
    }
  }

  /** Reads addresses and checks every length. For one thread. */
  private static final class Decoder {
    private final ByteBuffer in;
    private final String[] before = new String[TEXTS];
    private final byte[][] beforeBytes = new byte[TEXTS][0];
    private GpuEnd gpuBefore = NO_GPU;

    Decoder(ByteBuffer in) {
      this.in = in;
      Arrays.fill(before, "");
    }

    PeerAddress address() throws IOException {
      int differs = octet();
      int port = number(65535);
      for (int i = 0; i < TEXTS; i++) {
        if ((differs & (1 << i)) != 0) {
          text(i);
        }
      }
      if ((differs & GPU_BIT) != 0) {
        gpuBefore = gpu();
      }
      return new PeerAddress(
          before[0], before[1], before[2], port, before[3], before[4], before[5], before[6],
          gpuBefore);
    }

    private void text(int i) throws IOException {
      beforeBytes[i] = bytes(beforeBytes[i], number(beforeBytes[i].length));
      before[i] = new String(beforeBytes[i], StandardCharsets.UTF_8);
    }

    /** Reads a text that starts with some bytes of another one. */
    private byte[] bytes(byte[] other, int shared) throws IOException {
      int more = number(in.remaining());
      if (more > in.remaining()) {
        throw new IOException("addresses of executors are cut short");
      }
      byte[] bytes = Arrays.copyOf(other, shared + more);
      in.get(bytes, shared, more);
      return bytes;
    }

    private GpuEnd gpu() throws IOException {
      int ordinal = number(Integer.MAX_VALUE);
      String[] texts = new String[4];
      for (int i = 0; i < texts.length; i++) {
        texts[i] = new String(bytes(new byte[0], 0), StandardCharsets.UTF_8);
      }
      try {
        return new GpuEnd(texts[0], ordinal, texts[1], texts[2], texts[3], number(1) == 1);
      } catch (IllegalArgumentException e) {
        throw new IOException("the GPU of an executor is invalid", e);
      }
    }

    int octet() throws IOException {
      if (!in.hasRemaining()) {
        throw new IOException("addresses of executors are cut short");
      }
      return in.get() & 0xff;
    }

    int number(int most) throws IOException {
      long value = 0;
      for (int shift = 0; shift < 35; shift += 7) {
        int octet = octet();
        value |= (octet & 0x7fL) << shift;
        if (octet < 0x80) {
          if (value > most) {
            break;
          }
          return (int) value;
        }
      }
      throw new IOException("a number in addresses of executors is above " + most);
    }
  }
}
